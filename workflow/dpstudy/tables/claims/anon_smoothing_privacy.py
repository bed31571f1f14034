"""Claims of anon_smoothing on privacy (sections 2, 3.1, 4.2): recomputed, and compared with audits of our cells."""

import math
from fractions import Fraction

from dpstudy.privacy.audit import highest, refuted
from dpstudy.privacy.claimed import noise_multiplier, rho_of
from dpstudy.privacy.gaussian import epsilon_of
from dpstudy.privacy.printed import lower_bound, upper_bound
from dpstudy.tables.claims.anon_smoothing_printed import DELTA, EPSILONS, SMOOTHING
from dpstudy.tables.claims.finding import COMPUTED, Finding, decided, number
from dpstudy.tables.claims.role_evidence import Evidence

_PRINTED_RHO = ("0.080", "0.173", "1.049")  # at EPSILONS
_RECORDS = 100  # of the data sets that local sensitivities are computed on
_NO_AUDITS = "The study has no audits: no private cells in the role instance-smoothing"
DIMENSIONS = 64  # p, of section 4.2


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
    bounds: dict[str, dict[float, float]] = {}
    for run, lower in attacked:
        by_epsilon = bounds.setdefault(run.dataset, {})
        by_epsilon[run.epsilon] = max(lower, by_epsilon.get(run.epsilon, 0.0))
    listed = "; ".join(
        f"{place}: "
        + ", ".join(
            f"ε ≥ {lower_bound(lower, places=2)} where {number(e)} is claimed" for e, lower in by_epsilon.items()
        )
        for place, by_epsilon in bounds.items()
    )
    return (
        f"Attacks that replace a record refute the claimed ε in {above} of {len(attacked)} cells, exceeding the 2ε "
        f"that a claim for adding or removing one allows. {listed}"
    )


def instance_noise(evidence: Evidence) -> Finding:
    """Judge Proposition 1: noise scaled to local sensitivity protects each record."""
    same, alone = local_sensitivity(_RECORDS, _RECORDS), local_sensitivity(1, _RECORDS)
    half = local_sensitivity(_RECORDS // 2, _RECORDS)
    text = (
        f"Of {_RECORDS} identical records each has p(x) = p_−i(x) = K_h(0), hence s_i = {float(same):g}: it is "
        f"published as it is, and protected by nothing. The approximation K_h(0)/n = {float(alone):g} K_h(0) is that "
        f"of a record far from all others; where {_RECORDS // 2} of the {_RECORDS} are the same, s_i = "
        f"{float(half):.4f} K_h(0). It is a statistic of the private records: noise that it scales proves nothing"
    )
    return decided(same > 0, COMPUTED, text, audited(evidence))


def zero_concentrated(evidence: Evidence) -> Finding:
    """Judge Theorem 1: rho-zCDP at sigma^2 = 2 ln(1/delta)/rho."""
    epsilon = 3.0
    sigma = noise_multiplier(rho_of(epsilon, DELTA), DELTA)
    same = float(local_sensitivity(_RECORDS, _RECORDS)) * sigma
    peak = (2 * math.pi) ** (-DIMENSIONS / 2)
    farthest = float(local_sensitivity(1, 2)) * peak * sigma
    text = (
        f"At ε = {number(epsilon)}, δ = {upper_bound(DELTA)}: σ = {sigma:.2f}, and of {_RECORDS} identical records "
        f"each has noise of standard deviation s_i σ = {same:g}. With another record in the place of one of them its "
        "point differs with certainty: no ρ and no ε is finite. The proof (A.1) has σ² ≥ Δ²/(2ρ) and then drops Δ; the "
        f"printed σ, without s_i, would do for points that one record moves by at most Δ = 2 sqrt(ln(1/δ)) = "
        f"{2 * math.sqrt(math.log(1 / DELTA)):.2f}. Taken literally s_i σ is next to nothing: at p = {DIMENSIONS} "
        f"and h = 1 at most {farthest:.0e} for any record of any data"
    )
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
