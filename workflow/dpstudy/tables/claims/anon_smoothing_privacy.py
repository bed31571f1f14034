"""Claims of anon_smoothing on privacy (sections 2, 3.1, 4.2), kernels, numbers of records and error bounds (3.2, 3.3),
and distances between records (1, Figure 1): recomputed, and compared with audits of our cells."""

import math
import statistics
from fractions import Fraction
from itertools import pairwise

from dpstudy.evaluation.metrics import metric_of
from dpstudy.privacy.audit import highest, refuted
from dpstudy.privacy.claimed import noise_multiplier, rho_of
from dpstudy.privacy.gaussian import epsilon_of
from dpstudy.privacy.printed import lower_bound, upper_bound
from dpstudy.tables.claims.anon_smoothing_printed import CIFAR10, DELTA, DISTANCES, EPSILONS, FREE, SMOOTHING
from dpstudy.tables.claims.finding import COMPUTED, MEASUREMENT, Finding, decided
from dpstudy.tables.claims.grid import Triples, Value, number
from dpstudy.tables.claims.scores import Evidence, Scores, places
from dpstudy.tables.grouping import grouped
from dpstudy.tables.published import DISTANCES as MEASURED_DISTANCES
from dpstudy.tables.published import published_rows

_PRINTED_RHO = ("0.080", "0.173", "1.049")  # at EPSILONS
_RECORDS = 100  # of the data sets that local sensitivities are computed on
_NO_AUDITS = "The study has no audits: no private cells in the role instance-smoothing"
DIMENSIONS = 64  # p, of section 4.2
_PEAK = (2 * math.pi) ** (-DIMENSIONS / 2)  # the highest value of a kernel, at h = 1
_MARGIN = 10.0  # m (section 4.2)
_BANDWIDTHS = (0.5, 1.0, 2.0)  # h, which is not printed


def local_sensitivity(copies: int, n: int) -> Fraction:
    """The local sensitivity |p(x) - p_-i(x)| at a record, in units of K_h(0).

    Args:
        copies: how many of the n records are the same as it, itself among them; the others are so far away that their
            kernels are zero there.
    """
    return abs(Fraction(copies, n) - Fraction(copies - 1, n - 1))


def audited(evidence: Evidence) -> str:
    """The epsilons that audits of the study's cells proved, beside the claimed ones."""
    runs = [run for run in evidence.ours.of_any_size(SMOOTHING) if run.audit.get("audits")]
    if not runs:
        return _NO_AUDITS
    attacked = [(run, lower) for run in runs if (lower := highest(run.audit["audits"])) is not None]
    above = sum(refuted(run.audit["audits"], run.epsilon) for run in runs)
    texts = []
    for pairs in grouped(attacked, lambda pair: pair[0].dataset):
        by_epsilon = grouped(pairs, lambda pair: pair[0].epsilon)
        bounds = [(cells[0][0].epsilon, lower_bound(max(low for _, low in cells), places=2)) for cells in by_epsilon]
        listed = ", ".join(f"ε ≥ {bound} where {number(e)} is claimed" for e, bound in bounds)
        texts.append(f"{pairs[0][0].dataset}: {listed}")
    text = f"Attacks that replace a record refute the claimed ε in {above} of {len(attacked)} cells, exceeding the 2ε "
    return f"{text}that a claim for adding or removing one allows. {'; '.join(texts)}"


def instance_noise(evidence: Evidence) -> Finding:
    """Judge Proposition 1: noise scaled to local sensitivity protects each record."""
    same, alone = local_sensitivity(_RECORDS, _RECORDS), local_sensitivity(1, _RECORDS)
    half = local_sensitivity(_RECORDS // 2, _RECORDS)
    text = f"Of {_RECORDS} identical records each has p(x) = p_−i(x) = K_h(0), hence s_i = {float(same):g}: it is "
    text += f"published as it is, and protected by nothing. The approximation K_h(0)/n = {float(alone):g} K_h(0) is "
    text += f"that of a record far from all others; where {_RECORDS // 2} of the {_RECORDS} are the same, s_i = "
    text += f"{float(half):.4f} K_h(0). It is a statistic of the private records: noise that it scales proves nothing"
    return decided(same > 0, COMPUTED, text, audited(evidence))


def zero_concentrated(evidence: Evidence) -> Finding:
    """Judge Theorem 1: rho-zCDP at sigma^2 = 2 ln(1/delta)/rho."""
    sigma = noise_multiplier(rho_of(3.0, DELTA), DELTA)
    same = float(local_sensitivity(_RECORDS, _RECORDS)) * sigma
    farthest = float(local_sensitivity(1, 2)) * _PEAK * sigma
    text = f"At ε = 3, δ = {upper_bound(DELTA)}: σ = {sigma:.2f}, and of {_RECORDS} identical records each has noise "
    text += f"of standard deviation s_i σ = {same:g}. With another record in the place of one of them its point "
    text += "differs with certainty: no ρ and no ε is finite. The proof (A.1) has σ² ≥ Δ²/(2ρ) and then drops Δ; the "
    text += "printed σ, without s_i, would do for points that one record moves by at most Δ = 2 sqrt(ln(1/δ)) = "
    text += f"{2 * math.sqrt(math.log(1 / DELTA)):.2f}. Taken literally s_i σ is next to nothing: at p = {DIMENSIONS} "
    text += f"and h = 1 at most {farthest:.0e} for any record of any data"
    return decided(same > 0, COMPUTED, text, audited(evidence))


def conversion(evidence: Evidence) -> Finding:
    """Judge the claim: the values of rho for epsilon 2, 3 and 8."""
    rhos = [f"{rho_of(epsilon, DELTA):.3f}" for epsilon in EPSILONS]
    wrong = [epsilon for epsilon, one, two in zip(EPSILONS, rhos, _PRINTED_RHO, strict=True) if one != two]
    named = ", ".join(number(epsilon) for epsilon in EPSILONS)
    exact = ", ".join(upper_bound(epsilon_of(math.sqrt(2 * rho_of(e, DELTA)), DELTA), places=2) for e in EPSILONS)
    text = f"At δ = {upper_bound(DELTA)}, ε = {named} give ρ = {', '.join(rhos)}"
    text += f"; not as printed at ε = {', '.join(number(epsilon) for epsilon in wrong)}" if wrong else ", as printed"
    text += f". The conversion is an upper bound: one Gaussian release of that ρ has exactly ε = {exact}"
    return decided(not wrong, COMPUTED, text)


def _constants(h: float) -> tuple[float, float]:
    """The constant C of section 3.2, and that of appendix A.2."""
    return 1 / math.sqrt(2 * math.pi * h**2), 1 / (math.sqrt(2 * math.pi) * h**2)


def error_bound(epsilon: float, margin: float = _MARGIN, delta: float = DELTA) -> float:
    """The error bound of Theorem 3 at an epsilon's rho; 0 without smoothing."""
    if math.isinf(epsilon):
        return 0.0
    return 2 * math.exp(-(margin**2) * rho_of(epsilon, DELTA) / (4 * math.log(1 / delta)))


def enough_records(evidence: Evidence) -> Finding:
    """Judge Theorem 2: C/(rho (alpha - 1)) records are enough for rho-zCDP."""
    pairs = [(h, *_constants(h)) for h in _BANDWIDTHS]
    agree = all(math.isclose(first, second) for _, first, second in pairs)
    shown = "; ".join(f"h = {h:g}: {first:.3f} and {second:.3f}" for h, first, second in pairs)
    needed = {e: math.ceil(_constants(1.0)[0] / rho_of(e, DELTA)) for e in EPSILONS}
    least = ", ".join(f"{n} at ε = {number(e)}" for e, n in needed.items())
    most = max(needed.values())
    text = f"C of section 3.2 and of A.2: {shown}. Neither is the highest value of a kernel in {DIMENSIONS} "
    text += f"dimensions, which at h = 1 is {_PEAK:.0e}. With α = 2 and h = 1 these numbers of records would do, "
    text += f"whatever they are: {least}; but {most} identical ones have s_i = "
    text += f"{float(local_sensitivity(most, most)):g} and no finite ρ"
    asked = [
        f"{run.dataset}, ε = {number(run.epsilon)}: {run.metrics['hyperparameters']['smallest_n']:.2g} of {run.n:,}"
        for run in evidence.ours.of_any_size(SMOOTHING)
        if "smallest_n" in run.metrics.get("hyperparameters", {})
    ]
    here = f"What the bound asks of these cells: {'; '.join(asked)}" if asked else ""
    return decided(agree and local_sensitivity(most, most) > 0, COMPUTED, text, here)


def bounds_at_the_margin(evidence: Evidence) -> tuple[bool, str]:
    """The bounds of Theorem 3, 2 exp(-m^2 rho/(4 ln(1/delta))), which refute nothing."""
    bounds = ", ".join(f"{100 * error_bound(e):.1f} % at ε = {number(e)}" for e in EPSILONS)
    return True, f"With m = {_MARGIN:g} and δ = {upper_bound(DELTA)} the bound is {bounds}"


def _accuracies(scores: Scores, evidence: Evidence) -> Scores:
    """The scores, if they are accuracies; an area is none."""
    return scores if scores is evidence.printed or metric_of(evidence.metric).percent else Scores({})


def bounds_and_errors(scores: Scores, evidence: Evidence) -> Triples:
    """(place and epsilon, bound, error) at finite epsilons, with each cell's own margin and delta.

    Bounds of 100 % and more are not counted.
    """
    runs = _accuracies(scores, evidence).of_role(SMOOTHING)
    for run in (run for run in runs if run.data == CIFAR10 and run.private):
        options = run.metrics.get("hyperparameters", {})
        bound = error_bound(run.epsilon, options.get("margin", _MARGIN), options.get("noise_delta", DELTA))
        if (bound := options.get("error_bound", bound)) < 1:
            yield run.at, Value(100 * bound), _error(run.accuracy)


def unsmoothed_errors(scores: Scores, evidence: Evidence) -> Triples:
    """(place, the bound without smoothing, the error)."""
    for place in places(_accuracies(scores, evidence), CIFAR10):
        accuracy = scores.get(place, SMOOTHING, math.inf) or scores.get(place, FREE, math.inf)
        if accuracy is not None:
            yield place, Value(100 * error_bound(math.inf)), _error(accuracy)


def _error(accuracy: Value) -> Value:
    return Value(100 - accuracy.number, accuracy.error)


def rising(scores: Scores, role: str) -> Triples:
    """(place and epsilon, accuracy there, accuracy at the next smaller epsilon) on CIFAR-10."""
    for place in places(scores, CIFAR10, role):
        for low, high in pairwise(scores.finite(place, role)):
            yield f"{place} {number(high)}", scores.get(place, role, high), scores.get(place, role, low)


def smoothing_rises(evidence: Evidence) -> tuple[bool, str]:
    """Whether a higher rho means more smoothing, and the levels."""
    sigmas = {rho: noise_multiplier(rho, DELTA) for rho in (rho_of(e, DELTA) for e in EPSILONS)}
    listed = ", ".join(f"{sigma:.1f} at ρ = {rho:.3f}" for rho, sigma in sigmas.items())
    rises = any(low <= high for low, high in pairwise(sigmas.values()))
    return rises, f"σ of Theorem 1 is {listed}: a higher ρ is less smoothing"


def adaptive_kernel(evidence: Evidence) -> Finding:
    """Judge Proposition 2: sparse records get wider kernels, and with them more protection."""
    threshold = DISTANCES["car"]  # as in section 3.2
    classes = {name: "dense" if distance >= threshold else "sparse" for name, distance in DISTANCES.items()}
    share = 2 ** (-DIMENSIONS / 2)
    text = "N_r is called a density, and its threshold is a percentile of distances. With N_r the distance, as in the "
    text += f"text's example λ = {threshold:g}, a record is dense from λ on: "
    text += ", ".join(f"{name} ({DISTANCES[name]:g}) is {kind}" for name, kind in classes.items())
    text += ", while section 1 has dog for the sparse class. With N_r a density, wider kernels are lower, and with "
    text += f"them the s_i of a record far from all others: at p = {DIMENSIONS} and h' = h by the factor {share:.0e}, "
    text += "so that Proposition 1 gives it less noise, not more"
    return decided(classes["dog"] == "sparse" and share >= 1, COMPUTED, text)


def neighbour_distances(evidence: Evidence) -> Finding:
    """Judge the claim on the histogram of distances: cars are nearer to each other than classes are on average, dogs
    farther. The paper does not name its features; ours are those of a network that saw ImageNet."""
    text = ", ".join(f"{name} {distance:g}" for name, distance in DISTANCES.items())
    rows = published_rows(MEASURED_DISTANCES, "anon_smoothing")
    mean = statistics.fmean(float(row["mean"]) for row in rows)
    shown = {row["class"]: float(row["mean"]) for row in rows}
    car, dog = shown["automobile"], shown["dog"]
    here = f"{rows[0]['dataset']}, features of {rows[0]['features']}: "
    here += f"car {car:.3g}, dog {dog:.3g}, all classes {mean:.3g}"
    return decided(car < mean < dog, MEASUREMENT, f"As printed {text}, in unnamed features.", here)
