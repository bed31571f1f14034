"""Claims of mehta2023 about privacy and settings: theorems, accounting, configuration (sections 2, 3, appendices)."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import pairwise

from dpstudy.privacy.accountants import zcdp_epsilon
from dpstudy.privacy.events import Event
from dpstudy.privacy.gaussian import composed_mu, epsilon_of
from dpstudy.privacy.printed import upper_bound
from dpstudy.privacy.renyi import rdp_epsilon
from dpstudy.tables.claims.finding import CELLS, COMPUTED, PRINTED, Finding, Part, decided, on_cells
from dpstudy.tables.claims.grid import Triples, number
from dpstudy.tables.claims.mehta2023_accuracy import ADAM, FC, IMAGENET, LS, NEWTON
from dpstudy.tables.claims.mehta2023_printed import PRIVATE_SETS, Place
from dpstudy.tables.claims.scores import Evidence, Run

_DELTAS = {IMAGENET: 8e-7, "CIFAR-10": 1e-5, "CIFAR-100": 1e-5}
_TRIALS = {ADAM: 200, LS: 200, NEWTON: 300, FC: 200}
_ENLARGED = ("CIFAR-10", "CIFAR-100")  # whose small images networks see enlarged
_BIG = 1.0  # points from which on a difference reads as a big one
_STEPS, _CLASSES, _MULTIPLIER = 10, 100, 3.0  # at which a theorem is recomputed


def _gaussian(name: str, multiplier: float, count: int = 1) -> Event:
    return Event(name, "gaussian", multiplier, 1.0, count)


def _theorem(releases: Iterable[Event], stated: float, formula: str, remark: str = "") -> Finding:
    recomputed = composed_mu(releases) ** 2 / 2
    text = f"T = {_STEPS}, m = {_CLASSES}, σ = {_MULTIPLIER:g}: composed {recomputed:.6f}, {formula} = {stated:.6f}"
    return decided(math.isclose(recomputed, stated, rel_tol=1e-9), COMPUTED, f"{text}. {remark}".rstrip(". ") + ".")


def newton_privacy(evidence: Evidence) -> Finding:
    """Judge Theorem 2.1: T/sigma^2-zCDP."""
    noise, count = _MULTIPLIER * math.sqrt(_CLASSES), _CLASSES * _STEPS
    releases = [_gaussian("gradient", noise, count), _gaussian("hessian", noise, count)]
    remark = "It needs |derivative of the loss| ≤ 1, which the squared loss does not keep, though the text says so"
    return _theorem(releases, _STEPS / _MULTIPLIER**2, "T/σ^2", remark)


def least_squares_privacy(evidence: Evidence) -> Finding:
    """Judge Theorem 2.2: 3/(2 sigma^2)-zCDP."""
    releases = [_gaussian(name, _MULTIPLIER) for name in ("gram", "class_grams", "targets")]
    return _theorem(releases, 3 / (2 * _MULTIPLIER**2), "3/(2σ^2)", "m does not enter")


def covariance_privacy(evidence: Evidence) -> Finding:
    """Judge Theorem 2.3: (T + 1)/(2 sigma^2)-zCDP."""
    releases = [_gaussian("gram", _MULTIPLIER), _gaussian("gradient", _MULTIPLIER, _STEPS)]
    return _theorem(releases, (_STEPS + 1) / (2 * _MULTIPLIER**2), "(T + 1)/(2σ^2)")


def zcdp_of_epsilon_4(evidence: Evidence) -> Finding:
    """Judge the claim: epsilon 4 at delta 8e-7 is zCDP with rho = 0.154."""
    release, delta = [_gaussian("release", 1 / math.sqrt(2 * 0.154))], 8e-7
    epsilons = {
        "ρ + 2 sqrt(ρ ln 1/δ)": zcdp_epsilon(release, delta),
        "Renyi": rdp_epsilon(release, delta),
        "exact": epsilon_of(composed_mu(release), delta),
    }
    text = ", ".join(f"{name} {upper_bound(epsilon, places=2)}" for name, epsilon in epsilons.items())
    logarithm = math.log(1 / delta)
    needed = (math.sqrt(logarithm + 4) - math.sqrt(logarithm)) ** 2
    text = f"ε of ρ = 0.154: {text}. By the first, ε = 4 is ρ = {needed:.3f}"
    return decided(any(abs(epsilon - 4) < 0.1 for epsilon in epsilons.values()), COMPUTED, text)


def hessian_size(evidence: Evidence) -> Finding:
    """Judge the claim: a Hessian of shape [1000, 1664, 1664] has about 2.8 billion numbers."""
    entries = 1000 * 1664**2
    return decided(round(entries / 1e9, 1) == 2.8, COMPUTED, f"1000 * 1664^2 = {entries / 1e9:.3f} billion.")


def deltas(evidence: Evidence) -> Finding:
    """Judge the claim on delta, and on what epsilon = infinity turns off."""
    printed = {(row["dataset"], float(row["delta"])) for row in evidence.rows if row["table"] != "1" and row["delta"]}
    text = "; ".join(f"{dataset} {upper_bound(delta)}" for dataset, delta in sorted(printed))
    text += f". For ImageNet-1k, 1/n = {1 / PRIVATE_SETS[IMAGENET][0]:.3g} is smaller than its δ"
    free = [run for run in evidence.ours.runs if not run.private]
    noised = [run for run in free if run.ledger["events"]]
    here = f"{len(free) - len(noised)} of {len(free)} cells at ε = ∞ neither clip nor add noise"
    return decided(printed == set(_DELTAS.items()) and not noised, PRINTED, text, here if free else "")


def _captions(evidence: Evidence, parameter: str) -> list[Mapping[str, str]]:
    """What the captions of Tables 6-9 have of a parameter."""
    return [row for row in evidence.hyperparameters if row["parameter"] == parameter and row["table"] in "6789"]


def _by_method(evidence: Evidence, parameter: str) -> dict[str, str]:
    rows = [row for row in evidence.hyperparameters if row["parameter"] == parameter]
    return {row["method"].removesuffix(" (caption)"): row["value"] for row in rows}


def full_batch(evidence: Evidence) -> Finding:
    """Judge the claim: batches are full, with as many steps as epochs."""
    captions = [row["value"] for row in _captions(evidence, "batch_size")]
    if any(value != "full batch" for value in captions) or not captions:
        return decided(False, PRINTED, f"Captions of Tables 6-9: {', '.join(captions) or 'none'}.")
    text = "All captions of Tables 6-9 say full batch"
    noised = [run for run in evidence.ours.runs if run.ledger["events"]]
    if not noised:
        return decided(True, PRINTED, text, "No cell with noise to look at.")
    full = sum(map(_full_batch, noised))
    here = f"{full} of {len(noised)} ledgers: no sampling, as many gradient releases as epochs"
    return decided(full == len(noised), CELLS, text, here)


def _full_batch(run: Run) -> bool:
    events = run.ledger["events"]
    steps = [event["count"] for event in events if event["name"] == "gradient"]
    return all(event["sampling"] == "none" for event in events) and all(count == run.epochs for count in steps)


def initialisation(evidence: Evidence) -> Finding:
    """Judge the claim: DP-Adam and DP-FC use sigmoid cross-entropy with a bias of -10."""
    captions = _by_method(evidence, "init_bias")
    text = "Bias in the captions: " + ", ".join(f"{method} {value}" for method, value in captions.items())
    iterative = [run for run in evidence.ours.runs if run.role in (ADAM, FC)]
    if not iterative:
        same = {method: float(value) for method, value in captions.items()} == {ADAM: -10.0, FC: -10.0}
        return decided(same, PRINTED, text, "No cell of DP-Adam or DP-FC to look at.")
    alike = sum(_head(run.metrics["hyperparameters"]) == ("sigmoid", -10) for run in iterative)
    here = f"{alike} of {len(iterative)} cells of DP-Adam and DP-FC: sigmoid loss, bias -10"
    return decided(alike == len(iterative), CELLS, text, here)


def _head(hyperparameters: Mapping) -> tuple:
    """Loss and bias; those of a published variant where nothing is set."""
    unset = ("sigmoid", -10) if hyperparameters.get("variant") == "published" else (None, None)
    return hyperparameters.get("loss", unset[0]), hyperparameters.get("bias", unset[1])


def clipping_norms(evidence: Evidence) -> Finding:
    """Judge the claim: C = 1 for JFT-3B to ImageNet-1k and 0.005 elsewhere, with 200 or 300 trials."""
    norms = _captions(evidence, "clipping_norm")
    large = [(row["dataset"], row["pretraining"]) == (IMAGENET, "JFT-3B") for row in norms]
    same = [float(row["value"]) == (1.0 if one else 0.005) for row, one in zip(norms, large, strict=True)]
    trials = {method: int(count) for method, count in _by_method(evidence, "tuner_trials").items()}
    text = f"{sum(same)} of {len(norms)} rows of Tables 6-9; trials: "
    text += ", ".join(f"{method} {count}" for method, count in trials.items())
    return decided(bool(norms) and all(same) and trials == _TRIALS, PRINTED, text)


def resolution(evidence: Evidence) -> Finding:
    """Judge the claim: higher input resolution makes a big difference for CIFAR, with privacy and without."""

    def triples(private: bool) -> Triples:
        for sizes in evidence.resolutions:
            for less, more in pairwise(sizes.order):
                for (place, row, epsilon), ours in sizes.at(pretraining=more).values.items():
                    below = sizes.get(Place(place.dataset, less), row, epsilon)
                    if place.dataset in _ENLARGED and math.isinf(epsilon) is not private and below:
                        name = f"{place.dataset} {row[0]} {row[1]} ep. {number(epsilon)}, {more} over {less}"
                        yield name, ours, replace(below, mean=below.number + _BIG)

    parts = [
        Part.of(f"Larger images more than {_BIG:g} points over the next smaller, with privacy", triples(private=True)),
        Part.of("The same without privacy", triples(private=False)),
    ]
    return on_cells(parts, "The study has no cells on CIFAR at several sizes of the images (resolutions)")
