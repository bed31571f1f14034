"""Claims of anon_smoothing on kernels, numbers of records and error bounds (sections 3.2 and 3.3), recomputed."""

import math
from collections.abc import Iterator

from dpstudy.evaluation.metrics import metric_of
from dpstudy.privacy.claimed import noise_multiplier, rho_of
from dpstudy.privacy.printed import upper_bound
from dpstudy.tables.claims.anon_smoothing_accuracy import rising
from dpstudy.tables.claims.anon_smoothing_printed import (
    CIFAR10,
    DELTA,
    DISTANCES,
    EPSILONS,
    FREE,
    SMOOTHING,
    places,
)
from dpstudy.tables.claims.anon_smoothing_privacy import DIMENSIONS, local_sensitivity
from dpstudy.tables.claims.finding import COMPUTED, Finding, Part, by_roles, decided, noted, number
from dpstudy.tables.claims.grid import Value
from dpstudy.tables.claims.role_evidence import Evidence
from dpstudy.tables.claims.scores import Scores

_MARGIN = 10.0  # m (section 4.2)
_BANDWIDTHS = (0.5, 1.0, 2.0)  # h, which is not printed


def constant_in_the_section(h: float) -> float:
    """The constant C of section 3.2."""
    return 1 / math.sqrt(2 * math.pi * h**2)


def constant_in_the_appendix(h: float) -> float:
    """The constant C of appendix A.2."""
    return 1 / (math.sqrt(2 * math.pi) * h**2)


def error_bound(epsilon: float, margin: float = _MARGIN, delta: float = DELTA) -> float:
    """The error bound of Theorem 3 at an epsilon's rho; 0 without smoothing."""
    if math.isinf(epsilon):
        return 0.0
    return 2 * math.exp(-(margin**2) * rho_of(epsilon, DELTA) / (4 * math.log(1 / delta)))


def enough_records(evidence: Evidence) -> Finding:
    """Judge Theorem 2: C/(rho (alpha - 1)) records are enough for rho-zCDP."""
    pairs = [(h, constant_in_the_section(h), constant_in_the_appendix(h)) for h in _BANDWIDTHS]
    agree = all(math.isclose(first, second) for _, first, second in pairs)
    shown = "; ".join(f"h = {h:g}: {first:.3f} and {second:.3f}" for h, first, second in pairs)
    needed = {e: math.ceil(constant_in_the_section(1.0) / rho_of(e, DELTA)) for e in EPSILONS}
    least = ", ".join(f"{n} at ε = {number(e)}" for e, n in needed.items())
    peak = (2 * math.pi) ** (-DIMENSIONS / 2)
    most = max(needed.values())
    text = (
        f"C of section 3.2 and of A.2: {shown}. Neither is the highest value of a kernel in {DIMENSIONS} dimensions, "
        f"which at h = 1 is {peak:.0e}. With α = 2 and h = 1 these numbers of records would do, whatever they are: "
        f"{least}; but {most} identical ones have s_i = {float(local_sensitivity(most, most)):g} and no finite ρ"
    )
    asked = [
        f"{run.dataset}, ε = {number(run.epsilon)}: {run.metrics['hyperparameters']['smallest_n']:.2g} of {run.n:,}"
        for run in evidence.ours.of_any_size(SMOOTHING)
        if "smallest_n" in run.metrics.get("hyperparameters", {})
    ]
    here = f"What the bound asks of these cells: {'; '.join(asked)}" if asked else ""
    return decided(agree and local_sensitivity(most, most) > 0, COMPUTED, text, here)


def errors_below_the_bound(evidence: Evidence) -> Finding:
    """Judge Theorem 3: the error is below 2 exp(-m^2 rho/(4 ln(1/delta))).

    Bounds of 100 % and more are not counted.
    """

    def parts(scores: Scores) -> list[Part]:
        return [
            Part.of("Bound over the error, at finite ε", _bounds(scores)),
            Part.of("Bound at ε = ∞, which is 0, over the error without smoothing", _unsmoothed(scores)),
        ]

    def counted(scores: Scores) -> list[Part]:
        compared = (
            parts(scores) if scores is evidence.printed or metric_of(evidence.metric).percent else parts(Scores({}))
        )
        return [part for part in compared if part.counted] or compared[:1]

    roles = "instance-smoothing (CIFAR-10, accuracies, ε at which the bound is below 100 %)"
    bounds = ", ".join(f"{100 * error_bound(e):.1f} % at ε = {number(e)}" for e in EPSILONS)
    text = f"With m = {_MARGIN:g} and δ = {upper_bound(DELTA)} the bound is {bounds}"
    return noted(by_roles(evidence, counted, roles), text)


def _bounds(scores: Scores) -> Iterator[tuple[str, Value, Value]]:
    """(place and epsilon, bound, error) at finite epsilons, with each cell's own margin and delta."""
    for run in scores.of_role(SMOOTHING):
        if run.data != CIFAR10 or math.isinf(run.epsilon):
            continue
        options = run.metrics.get("hyperparameters", {})
        bound = error_bound(run.epsilon, options.get("margin", _MARGIN), options.get("noise_delta", DELTA))
        bound = options.get("error_bound", bound)
        if bound < 1:
            error = Value(100 - run.accuracy.number, run.accuracy.error)
            yield f"{run.dataset} {number(run.epsilon)}", Value(100 * bound), error


def _unsmoothed(scores: Scores) -> Iterator[tuple[str, Value, Value]]:
    for place in places(scores, CIFAR10):
        accuracy = scores.get(place, SMOOTHING, math.inf) or scores.get(place, FREE, math.inf)
        if accuracy is not None:
            yield place, Value(100 * error_bound(math.inf)), Value(100 - accuracy.number, accuracy.error)


def more_smoothing(evidence: Evidence) -> Finding:
    """Judge the claim: a higher rho means more smoothing and lower accuracy."""
    sigmas = {e: noise_multiplier(rho_of(e, DELTA), DELTA) for e in EPSILONS}
    falling = all(sigmas[low] > sigmas[high] for low, high in zip(EPSILONS, EPSILONS[1:], strict=False))
    listed = ", ".join(f"{sigma:.1f} at ρ = {rho_of(e, DELTA):.3f}" for e, sigma in sigmas.items())

    def part(scores: Scores) -> Part:
        triples = [(name, low, high) for name, high, low in rising(scores, CIFAR10, SMOOTHING)]
        return Part.of("Accuracy at the smaller ε over that at the larger", triples)

    text = f"σ of Theorem 1 is {listed}: a higher ρ is less smoothing. {part(evidence.printed)}"
    ours = part(evidence.ours)
    return decided(not falling, COMPUTED, text, str(ours) if ours.counted else "")


def adaptive_kernel(evidence: Evidence) -> Finding:
    """Judge Proposition 2: sparse records get wider kernels, and with them more protection."""
    threshold = DISTANCES["car"]  # as in section 3.2
    classes = {name: "dense" if distance >= threshold else "sparse" for name, distance in DISTANCES.items()}
    share = 2 ** (-DIMENSIONS / 2)
    text = (
        "N_r is called a density, and its threshold is a percentile of distances. With N_r the distance, as in the "
        f"text's example λ = {threshold:g}, a record is dense from λ on: "
        + ", ".join(f"{name} ({DISTANCES[name]:g}) is {kind}" for name, kind in classes.items())
        + ", while section 1 has dog for the sparse class. With N_r a density, wider kernels are lower, and with them "
        f"the s_i of a record far from all others: at p = {DIMENSIONS} and h' = h by the factor {share:.0e}, so that "
        "Proposition 1 gives it less noise, not more"
    )
    return decided(classes["dog"] == "sparse" and share >= 1, COMPUTED, text)
