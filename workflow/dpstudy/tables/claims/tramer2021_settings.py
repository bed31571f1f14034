"""Claims of tramer2021 about sizes, settings and accounting (sections 2.1, 3.1, 4; appendices B, C, D)."""

import math
from collections.abc import Sequence
from functools import cache, partial
from itertools import pairwise

from dpstudy.core.errors import StudyError
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.calibration import affordable, calibrate
from dpstudy.privacy.events import Event
from dpstudy.privacy.gaussian import composed_mu, epsilon_of
from dpstudy.privacy.noise_levels import noise_level
from dpstudy.privacy.printed import upper_bound
from dpstudy.privacy.published import tramer2021 as plain_conversion
from dpstudy.privacy.renyi import rdp_curve
from dpstudy.tables.claims.finding import CELLS, COMPUTED, FAILS, HOLDS, PRINTED, Finding, decided
from dpstudy.tables.claims.grid import Triples, Value, number
from dpstudy.tables.claims.names import MODELS
from dpstudy.tables.claims.scores import Evidence, Scores
from dpstudy.tables.claims.tramer2021_printed import CIFAR, FASHION, MNIST, PAPER
from dpstudy.tables.printed_layers import parameters, table_4

_IN_TABLE_4 = {"linear": "ScatterNet+Linear", "scatter-cnn": "ScatterNet+CNN", "cnn": "End-to-end CNN"}
TABLE_4 = {  # (data set, role) -> the model's name there
    (dataset, role): f"{model} ({'CIFAR-10' if dataset == CIFAR else 'MNIST and Fashion-MNIST'})"
    for dataset in (MNIST, FASHION, CIFAR)
    for role, model in _IN_TABLE_4.items()
} | {(CIFAR, "cnn-smaller"): "End-to-end CNN, smaller (CIFAR-10)"}
AS_MANY = 90.0  # percent of another model's parameters that read as "as many"
ROUNDING = 1000  # Table 4 counts in thousands, some cut off, some rounded
CONSTANT = 0.15  # relative spread of sigma/sqrt(B/N) over B = 512 to 16384 that reads as constant
_RECORDS, _EPOCHS, _EPSILON, _DELTA = 50_000, 60, "3", 1e-5  # Figure 6
_FIGURE_9, _LEAST, _MOST = ("0.15", "0.3", "1", "3", "10", "30", "50"), 0.2, 40.0
_CERTIFIED = ("0.1", "1", "3", "10", "50")
_MORE_RECORDS, _BATCH, _STEPS = (10_000, 50_000, 100_000), 8192, 183  # C.7: 30 times 50,000 examples
_BATCHES = tuple(512 * 2**k for k in range(6))
_ORDERS = (1.5, 2.0, 8.0, 64.0)
_SCATTERNETS = {MNIST: (1, 28, 3969), FASHION: (1, 28, 3969), CIFAR: (3, 32, 15552)}  # channels, side, stated features
_SCALES, _ANGLES = 2, 8
_COMMON = {"clipping_norm": 0.1, "momentum": 0.9, "optimiser": "momentum"}


def parameters_of_models(scores: Scores, evidence: Evidence) -> Triples:
    """(data set, parameters of the linear model in percent of the CNN's, what reads as many)."""
    sizes = _sizes(evidence, scores)
    for dataset, other in ((MNIST, "cnn"), (FASHION, "cnn"), (CIFAR, "cnn-smaller")):
        linear, cnn = sizes.get((dataset, "linear")), sizes.get((dataset, other))
        if linear and cnn:
            yield dataset, Value(100 * linear / cnn), Value(AS_MANY)


def leads_and_changes(scores: Scores) -> Triples:
    """(CIFAR-10, lead of the linear model over the smaller CNN, what the CNN's size changes) at each epsilon."""
    for epsilon in scores.epsilons(CIFAR, "cnn-smaller"):
        linear, cnn, smaller = (scores.get(CIFAR, role, epsilon) for role in ("linear", "cnn", "cnn-smaller"))
        if linear and cnn and smaller and (change := smaller - cnn):
            yield CIFAR, linear - smaller, Value(abs(change.number), change.error)


def _sizes(evidence: Evidence, scores: Scores) -> dict[tuple[str, str], int]:
    """(data set, role) -> parameters: those of our models, or as Tables 5 to 9 print them."""
    if scores is evidence.printed:
        return {key: parameters(model) for key, model in TABLE_4.items()}
    return {(run.dataset, run.role): run.metrics["parameters"] for run in scores.runs if "parameters" in run.metrics}


def counts_follow(evidence: Evidence) -> Finding:
    """Judge whether the printed layers give Table 4's counts; for the CNNs on ScatterNet features they do not."""
    counted = {model: (parameters(model), int(text.removesuffix("K")) * 1000) for model, text in table_4().items()}
    wrong = {model for model, (ours, theirs) in counted.items() if abs(ours - theirs) >= ROUNDING}
    expected = {model for model in counted if model.startswith("ScatterNet+CNN")}
    text = ", ".join(f"{model} {ours:,} against {theirs // 1000}K" for model, (ours, theirs) in counted.items())
    small, large = sorted(expected, reverse=True)
    text += f". {parameters(small, [0, 1]):,} without Table 8's poolings, "
    text += f"{parameters(large, [1]):,} with one of Table 9's"
    sizes = _sizes(evidence, evidence.ours).items()
    here = ", ".join(f"{dataset} {role} {n:,}" for (dataset, role), n in sizes if (dataset, role) in TABLE_4)
    return decided(wrong == expected, COMPUTED, text, here)


def noise_and_rate(evidence: Evidence) -> Finding:
    """Judge the claim: sigma is about c sqrt(B/N) at fixed epsilon, delta and epochs."""
    constants = {batch: _constant(batch) for batch in _BATCHES}
    spread = max(constants.values()) / min(constants.values()) - 1
    text = ", ".join(f"B = {batch}: {constant:.1f}" for batch, constant in constants.items())
    text = f"σ/sqrt(B/N) by the paper's accounting, N = {_RECORDS:,}, {_EPOCHS} epochs: {text}; spread {spread:.0%}, "
    text += f"up to {CONSTANT:.0%} counts as constant. B = 256: {_constant(256):.1f}"
    return decided(spread <= CONSTANT, COMPUTED, text)


@cache
def _constant(batch: int) -> float:
    rate = batch / _RECORDS
    events = partial(_gradients, steps=round(_EPOCHS / rate), rate=rate)
    return calibrate(events, Budget(_EPSILON, _DELTA, "tramer2021")) / math.sqrt(rate)


def _gradients(scale: float, steps: int, rate: float) -> tuple[Event, ...]:
    return (Event("gradient", "gaussian", scale, 1.0, steps, "poisson", rate),)


def normalisation_privacy(evidence: Evidence) -> Finding:
    """Judge Claim B.5: private normalisation is (alpha, alpha/sigma^2)-RDP."""
    differences, texts = [], []
    for sigma in (6.0, 8.0):
        composed = rdp_curve([Event(name, "gaussian", sigma, 1.0) for name in ("mean", "square")], _ORDERS)
        stated = [order / sigma**2 for order in _ORDERS]
        differences += [abs(ours / theirs - 1) for ours, theirs in zip(composed, stated, strict=True)]
        texts.append(f"σ = {sigma:g}, α = {_ORDERS[1]:g}: composed {composed[1]:.6f}, α/σ^2 = {stated[1]:.6f}")
    text = ". ".join(texts) + ". It needs fixed C1 and C2; the released code clips at a median of the private records"
    return decided(max(differences) < 1e-9, COMPUTED, text)


def plain_conversion_valid(evidence: Evidence) -> Finding:
    """Judge Lemma B.4: the conversion epsilon + log(1/delta)/(alpha - 1)."""
    sigmas = (0.5, 1.0, 2.0, 8.0)
    releases = [[Event("release", "gaussian", sigma, 1.0)] for sigma in sigmas]
    pairs = [(plain_conversion(one, _DELTA), epsilon_of(composed_mu(one), _DELTA)) for one in releases]
    compared = [f"{_printed(bound)} against {_printed(exact)}" for bound, exact in pairs]
    text = ", ".join(f"σ = {sigma:g}: {both}" for sigma, both in zip(sigmas, compared, strict=True))
    text = f"One Gaussian release, by the lemma against exactly: {text}. Valid, and looser"
    found = certified(evidence)
    here = ", ".join(f"{name}: noise for ε = {e} by the lemma certifies {proved}" for name, e, proved in found)
    return decided(all(bound >= exact for bound, exact in pairs), COMPUTED, text, here)


def certified(evidence: Evidence) -> list[tuple[str, str, str]]:
    """(data set, epsilon, what PLD certifies) of the linear models with the noise that the paper takes for it."""
    runs = [run for run in evidence.ours.of_role("linear-printed") if run.ledger["epsilon"] is not None]
    return [(run.dataset, number(run.epsilon), _printed(run.ledger["epsilon"])) for run in runs]


def _printed(epsilon: float) -> str:
    return upper_bound(epsilon, places=2)


def scatternet_shapes(evidence: Evidence) -> Finding:
    """Judge the claim: 3,969 features of a 28x28 grey image, 15,552 of a 32x32 RGB one."""
    orders = 1 + _SCALES * _ANGLES + _ANGLES**2 * math.comb(_SCALES, 2)  # paths of order 0, 1 and 2
    widths = {name: channels * orders * (side // 2**_SCALES) ** 2 for name, (channels, side, _) in _SCATTERNETS.items()}
    text = f"1 + J L + L^2 J(J - 1)/2 = {orders} a channel; {', '.join(f'{k} {v:,}' for k, v in widths.items())}"
    wrong = [name for name, (_, _, stated) in _SCATTERNETS.items() if widths[name] != stated]
    runs = [run for run in evidence.ours.of_role("linear") if "parameters" in run.metrics and run.dataset in widths]
    seen = {run.dataset: run.metrics["parameters"] // run.metrics["classes"] - 1 for run in runs}
    differing = [name for name, features in seen.items() if features != widths[name]]
    here = ", ".join(f"{name}: linear models of {features:,} features" for name, features in seen.items())
    return decided(not wrong and not differing, CELLS if seen else COMPUTED, text, here)


def common_settings(evidence: Evidence) -> Finding:
    """Judge the claim: C = 0.1, momentum 0.9 and delta = 1e-5 in all private runs."""
    wanted = {"clipping_norm": "0.1", "momentum": "0.9"}
    rows = [r for r in evidence.hyperparameters if r["parameter"] in wanted and r["table"] in ("10", "12", "15")]
    same = sum(row["value"] == wanted[row["parameter"]] for row in rows)
    printed = f"{same} of {len(rows)} rows of Tables 10, 12 and 15 with a clipping norm or a momentum"
    runs = [run for run in evidence.ours.of_role(*MODELS) if run.private]
    if not runs or same < len(rows):
        return decided(bool(rows) and same == len(rows), PRINTED, printed)
    alike = sum(
        _COMMON.items() <= run.metrics["hyperparameters"].items() and run.ledger["delta"] == _DELTA for run in runs
    )
    here = f"{alike} of {len(runs)} private cells: momentum 0.9, C = 0.1, δ = 1e-5"
    return decided(alike == len(runs), CELLS, printed, here)


def iteration_noise(evidence: Evidence) -> Finding:
    """Judge the claim: DP-SGD needs less noise than amplification by iteration, for epsilon from 0.2 to 40.

    Judged by the noise that is certified; the accounting that we take the paper's to be stands beside it.
    """
    theirs, stated = _noise_levels(_FIGURE_9, PAPER)
    text = f"By the paper's accounting, B/N = 512/50,000, 10 epochs, it {HOLDS if stated else FAILS}; {theirs}. "
    text += "Below 0.2 no noise of DP-SGD is enough, because the Renyi orders in use end at 63. The paper states no "
    text += "adjacency for iteration: replace-one, equal batches and the best order are what gives its crossing"
    ours, certified = _noise_levels(_CERTIFIED, "certified")
    here = f"Certified, one record added, removed or emptied, iteration for 99 % of the records: {ours}"
    return decided(certified, COMPUTED, text, here)


def _noise_levels(epsilons: Sequence[str], accounting: str) -> tuple[str, bool]:
    """What both need, as text, and whether iteration needs less where the paper says so and nowhere else."""
    levels = [(e, *_levels(e, accounting)) for e in epsilons]
    as_stated = all((iterated < sgd) == (not _LEAST <= float(e) <= _MOST) for e, sgd, iterated in levels)
    shown = [(e, "none" if math.isinf(sgd) else f"{sgd:.2f}", iterated) for e, sgd, iterated in levels]
    text = ", ".join(f"ε = {e}: {sgd} and {iterated:.2f}" for e, sgd, iterated in shown)
    return f"σ of DP-SGD and of iteration at {text}", as_stated


@cache
def _levels(epsilon: str, accounting: str) -> tuple[float, float]:
    """The noise multipliers of DP-SGD and of iteration; infinite where none is enough."""

    def level(algorithm: str) -> float:
        try:
            return noise_level(algorithm, accounting, epsilon, _DELTA, records=_RECORDS, batch_size=512, epochs=10)
        except StudyError:
            return math.inf

    return level("dp-sgd"), level("iteration")


def more_steps_for_more_records(evidence: Evidence) -> Finding:
    """Judge the claim: with more records DP-SGD can take more steps, or less noise, for the same epsilon."""
    found = [(records, *_steps_and_noise(records)) for records in _MORE_RECORDS]
    text = ", ".join(
        f"N = {records:,}: {steps:,} steps with σ = {found[0][2]:.2f}, or σ = {level:.2f} for {_STEPS}"
        for records, steps, level in found
    )
    better = all(few[1] < many[1] and few[2] > many[2] for few, many in pairwise(found))
    return decided(better, COMPUTED, f"Certified, ε = {_EPSILON}, δ = 1/(2N), batches of {_BATCH}: {text}")


@cache
def _steps_and_noise(records: int) -> tuple[int, float]:
    """How many steps the noise allows that the fewest records need for _STEPS, and how little noise _STEPS need."""
    budget, events = Budget(_EPSILON, 1 / (2 * records)), partial(_gradients, rate=_BATCH / records)
    level = calibrate(partial(events, steps=_STEPS), budget)
    if records == _MORE_RECORDS[0]:
        return _STEPS, level
    return affordable(partial(events, _steps_and_noise(_MORE_RECORDS[0])[1]), budget), level
