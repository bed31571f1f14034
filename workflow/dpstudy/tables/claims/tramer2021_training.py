"""Claims of tramer2021 about training: convergence with and without noise, learning rates, batches (4, D.1): what their
comparisons in workflow/published/claims/tramer2021.yaml compare."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import product

from dpstudy.tables.claims.finding import COMPUTED, Finding, Triples, decided
from dpstudy.tables.claims.grid import Value
from dpstudy.tables.claims.names import MODELS
from dpstudy.tables.claims.role_evidence import Evidence
from dpstudy.tables.claims.scores import Run, Scores

_EARLY = 0.25  # of training: where convergence is compared
_TENFOLD = (5.0, 20.0)  # ratios of rates that read as "about an order of magnitude"
_EXAMPLE = (4, 512, Fraction(1, 4), Fraction(3, 2))  # k, B, eta and sigma at which the algebra is done


def rates_differ_tenfold(evidence: Evidence) -> tuple[bool, str]:
    """Whether Table 14's best rates with noise are about ten times lower than without, and by how much."""
    rates = {
        (row["dataset"], row["parameter"]): float(Fraction(row["value"]))
        for row in evidence.hyperparameters
        if row["table"] == "14" and row["parameter"].startswith("learning_rate")
    }
    ratios = [rates[d, "learning_rate_high"] / rate for (d, name), rate in rates.items() if name.endswith("low")]
    text = f"Table 14's rates differ by a factor of {', '.join(f'{ratio:g}' for ratio in ratios)}"
    return bool(ratios) and all(_TENFOLD[0] <= ratio <= _TENFOLD[1] for ratio in ratios), text


def _same(scores: Scores, left: str, right: str, datasets: Sequence[str] = ()) -> list[tuple[str, Run, Run]]:
    """(data set and model, left, right) of every model's two convergence runs, whatever their epsilon."""
    return [
        (f"{a.dataset} {model}", a, b)
        for model in MODELS
        for a, b in product(scores.of_role(model + left), scores.of_role(model + right))
        if (a.dataset, a.n) == (b.dataset, b.n) and (not datasets or a.dataset in datasets)
    ]


def last_points(scores: Scores, left: str, right: str, datasets: Sequence[str] = ()) -> Triples:
    """(data set and model, left, right) of every model's last accuracies in two convergence runs."""
    return [(name, a.accuracy, b.accuracy) for name, a, b in _same(scores, left, right, datasets)]


def points_along(scores: Scores, left: str, right: str, datasets: Sequence[str]) -> Triples:
    """(name, left, right) at each point of every model's curves in two convergence runs, after the first quarter."""
    return [
        (f"{name} after {one.epochs:.0f}", one.accuracy, other.accuracy)
        for name, a, b in _same(scores, left, right, datasets)
        for one, other in zip(a.curve, b.curve, strict=False)
        if one.epochs == other.epochs and one.epochs >= _EARLY * a.curve[-1].epochs
    ]


def losses_by_rate(scores: Scores, datasets: Sequence[str]) -> Triples:
    """(data set and model, what noise costs at the high rate, at the low one)."""
    low, high = (
        {name: a.accuracy - b.accuracy for name, a, b in _same(scores, f"-{rate}-clip", f"-{rate}", datasets)}
        for rate in ("low", "high")
    )
    return [(name, loss, low.get(name)) for name, loss in high.items()]


def early_points(scores: Scores, datasets: Sequence[str]) -> Triples:
    """(data set and model, ScatterNet model after a quarter of training, CNN) at the low rate, without noise."""
    features, cnns = scores.of_role("linear-low-clip", "scatter-cnn-low-clip"), scores.of_role("cnn-low-clip")
    return [
        (f"{run.dataset} {run.role.removesuffix('-low-clip')}", _early(run), _early(cnn))
        for run, cnn in product(features, cnns)
        if run.dataset == cnn.dataset and run.dataset in datasets
    ]


def _early(run: Run) -> Value | None:
    """The accuracy of a run after the first quarter of its epochs."""
    if not run.curve:
        return None
    until = _EARLY * run.curve[-1].epochs * (1 + 1e-9)
    return next((point.accuracy for point in reversed(run.curve) if point.epochs <= until), None)


def batches_and_the_smallest(scores: Scores) -> Triples:
    """(point of a CNN's curve, its accuracy, that with the smallest batch), after the first quarter."""
    first: dict[tuple[str, float], Run] = {}
    return [
        (f"{run.dataset} {run.entry} after {a.epochs:.0f}", a.accuracy, b.accuracy)
        for run in scores.of_role("cnn-batches")
        if run is not (smallest := first.setdefault((run.dataset, run.epsilon), run))
        for a, b in zip(run.curve, smallest.curve, strict=False)
        if a.epochs >= _EARLY * run.curve[-1].epochs
    ]


def one_large_step(evidence: Evidence) -> Finding:
    """Judge the claim: k steps at (B, eta, sigma) add the noise of one at (kB, k eta, sqrt(k) sigma)."""
    k, batch, rate, sigma = _EXAMPLE
    several = k * rate**2 * sigma**2 / batch**2
    one = (k * rate) ** 2 * (k * sigma**2) / (k * batch) ** 2
    text = f"k = {k}, B = {batch}, η = {rate}, σ = {sigma}: variances {float(several):.4g} and {float(one):.4g}"
    return decided(several == one, COMPUTED, text)
