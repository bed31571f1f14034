"""Claims of tramer2021 about training: normalisation, convergence with and without noise, batches (2.2, 4, D.1)."""

from collections.abc import Sequence
from fractions import Fraction

from dpstudy.tables.claims.finding import COMPUTED, Finding, Part, decided, on_cells
from dpstudy.tables.claims.grid import Value
from dpstudy.tables.claims.names import MODELS
from dpstudy.tables.claims.role_evidence import Evidence
from dpstudy.tables.claims.scores import Run, Scores
from dpstudy.tables.claims.tramer2021_accuracy import CIFAR, FASHION, MNIST

_EARLY = 0.25  # of training: where convergence is compared
_TENFOLD = (5.0, 20.0)  # ratios of rates that read as "about an order of magnitude"
_SIMILAR = 3.0  # points between curves with and without noise that still read as "similar"
_IDENTICAL = 1.0  # points between curves that still read as "nearly identical"
_NO_CONVERGENCE = "The study has no trainings at a low and a high rate, with and without noise"
_EXAMPLE = (4, 512, Fraction(1, 4), Fraction(3, 2))  # k, B, eta and sigma at which the algebra is done


def lower_rate_with_noise(evidence: Evidence) -> Finding:
    """Judge the claim: the best learning rate with noise is about ten times lower than without."""
    rates: dict[tuple[str, str], float] = {}
    for row in evidence.hyperparameters:
        if row["table"] == "14" and row["parameter"].startswith("learning_rate"):
            rates[row["dataset"], row["parameter"]] = float(Fraction(row["value"]))
    ratios = [
        rates[d, "learning_rate_high"] / rates[d, "learning_rate_low"] for d, name in rates if name.endswith("low")
    ]
    printed = f"Table 14's rates differ by a factor of {', '.join(f'{ratio:g}' for ratio in ratios)}"
    if not ratios or not all(_TENFOLD[0] <= ratio <= _TENFOLD[1] for ratio in ratios):
        return decided(False, COMPUTED, printed)
    return on_cells(_rates(evidence.ours), _NO_CONVERGENCE, printed)


def _rates(scores: Scores) -> list[Part]:
    return [
        Part.of("With noise, the low rate over the high one", _finals(scores, "-low", "-high")),
        Part.not_below(
            "Without noise, the high rate not below the low one", _finals(scores, "-high-clip", "-low-clip")
        ),
    ]


def _finals(scores: Scores, left: str, right: str, datasets: Sequence[str] = ()) -> list[tuple[str, Value, Value]]:
    """(name, left, right) of every model's last accuracies in two convergence runs, whatever their epsilon."""
    pairs = []
    for model in MODELS:
        for a in scores.of_role(model + left):
            matching = [b for b in scores.of_role(model + right) if (b.dataset, b.n) == (a.dataset, a.n)]
            if not datasets or a.dataset in datasets:
                pairs += [(f"{a.dataset} {model}", a.accuracy, b.accuracy) for b in matching]
    return pairs


def convergence(datasets: Sequence[str]):
    """The function that judges Figure 3's claim on some data sets.

    At the low rate training is alike with and without noise and ScatterNet models converge faster; at the high rate
    noise costs much.
    """

    def claim(evidence: Evidence) -> Finding:
        def parts(scores: Scores) -> list[Part]:
            losses = {}
            for rate in ("low", "high"):
                triples = _finals(scores, f"-{rate}-clip", f"-{rate}", datasets)
                losses[rate] = {name: without - noisy for name, without, noisy in triples}
            early = [
                (f"{run.dataset} {run.role.removesuffix('-low-clip')}", _early(run), _early(cnn))
                for run in scores.of_role("linear-low-clip", "scatter-cnn-low-clip")
                for cnn in scores.of_role("cnn-low-clip")
                if run.dataset == cnn.dataset and run.dataset in datasets
            ]
            high = _finals(scores, "-high-clip", "-high", datasets)
            return [
                Part.not_below(
                    f"Low rate: with noise no more than {_SIMILAR:g} points below, from {_EARLY:.0%} of training on",
                    _along(scores, "-low", "-low-clip", datasets),
                    _SIMILAR,
                ),
                Part.of(
                    "What noise costs at the high rate over what it costs at the low one",
                    [(name, loss, losses["low"].get(name)) for name, loss in losses["high"].items()],
                ),
                Part.of("High rate: without noise over with it", high),
                Part.of(f"Low rate, no noise, after {_EARLY:.0%} of training: ScatterNet models over the CNN", early),
            ]

        return on_cells(parts(evidence.ours), _NO_CONVERGENCE)

    return claim


def _along(scores: Scores, left: str, right: str, datasets: Sequence[str]) -> list[tuple[str, Value, Value]]:
    """(name, left, right) at each point of every model's curves in two convergence runs, after the first quarter."""
    return [
        (f"{a.dataset} {model} after {one.epochs:.0f}", one.accuracy, other.accuracy)
        for model in MODELS
        for a in scores.of_role(model + left)
        for b in scores.of_role(model + right)
        if (a.dataset, a.n) == (b.dataset, b.n) and a.dataset in datasets
        for one, other in zip(a.curve, b.curve, strict=False)
        if one.epochs == other.epochs and one.epochs >= _EARLY * a.curve[-1].epochs
    ]


def _early(run: Run) -> Value | None:
    """The accuracy of a run after the first quarter of its epochs."""
    if not run.curve:
        return None
    until = _EARLY * run.curve[-1].epochs * (1 + 1e-9)
    return next((point.accuracy for point in reversed(run.curve) if point.epochs <= until), None)


def batch_sizes(evidence: Evidence) -> Finding:
    """Judge the claim: with rates scaled by the batch, CNNs' training curves hardly depend on the batch."""
    runs = evidence.ours.of_role("cnn-batches")
    triples = []
    for run in runs:
        first = next(other for other in runs if (other.dataset, other.epsilon) == (run.dataset, run.epsilon))
        if run is not first:
            triples += [
                (f"{run.dataset} {run.entry} after {a.epochs:.0f}", a.accuracy, b.accuracy)
                for a, b in zip(run.curve, first.curve, strict=False)
                if a.epochs >= _EARLY * run.curve[-1].epochs
            ]
    parts = [
        Part.not_below(
            f"No more than {_IDENTICAL:g} point below the smallest batch, from {_EARLY:.0%} of training on",
            triples,
            _IDENTICAL,
        ),
        Part.not_below(
            f"No more than {_IDENTICAL:g} point above it, likewise",
            [(name, b, a) for name, a, b in triples],
            _IDENTICAL,
        ),
    ]
    return on_cells(parts, "The study has no training curves of several batch sizes in the role cnn-batches")


def one_large_step(evidence: Evidence) -> Finding:
    """Judge the claim: k steps at (B, eta, sigma) add the noise of one at (kB, k eta, sqrt(k) sigma)."""
    k, batch, rate, sigma = _EXAMPLE
    several = k * rate**2 * sigma**2 / batch**2
    one = (k * rate) ** 2 * (k * sigma**2) / (k * batch) ** 2
    text = f"k = {k}, B = {batch}, η = {rate}, σ = {sigma}: variances {float(several):.4g} and {float(one):.4g}"
    return decided(several == one, COMPUTED, text)


convergence_on_cifar = convergence([CIFAR])
convergence_on_grey_images = convergence([MNIST, FASHION])
