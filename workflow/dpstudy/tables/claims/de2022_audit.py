"""Claims of de2022 about its audit by membership inference (appendix A.2, Tables 8 and 9)."""

import math

from dpstudy.tables.claims.finding import COMPUTED, PRINTED, Finding, decided, number, undecided
from dpstudy.tables.claims.role_evidence import Evidence

_SMALL, _LARGE = "|D|=100", "|D|=60K"
_SIZES = {_LARGE: 60_000, _SMALL: 100}
_TWICE_ABOVE = 1.0  # the nominal epsilon above which the bounds are said to be over twice as strong
_MODELS, _RESERVED, _EVALUATED = 500_000, 10_000, 980_000  # phase II: on each of D and D + z, for the threshold, in all
_CONFIDENCE = 0.999
_NO_AUDIT = "What `black_box` finds (studies/de2022-audit-small.yaml) is not read here"


def _statistics(evidence: Evidence, metric: str) -> dict[tuple[str, float], str]:
    """(|D|, nominal epsilon) -> one statistic of Table 9, as printed."""
    return {
        (row["method"].partition("(")[2].rstrip(")"), float(row["epsilon"])): row["value"]
        for row in evidence.rows
        if row["table"] == "9" and row["metric"] == metric
    }


def no_violation(evidence: Evidence) -> Finding:
    """Every lower bound lies below the nominal epsilon."""
    found = _statistics(evidence, "eps_lower_bound")
    above = [f"{size}, ε = {number(e)}" for (size, e), value in found.items() if float(value) >= e]
    share = max(float(value) / e for (_, e), value in found.items())
    text = f"{len(found) - len(above)} of {len(found)} lower bounds of Table 9 below the nominal ε, at most {share:.0%}"
    text += f"; not {', '.join(above)}" if above else ""
    return decided(not above, PRINTED, text, f"{_NO_AUDIT}; ledgers certify upper bounds")


def tighter_on_small_sets(evidence: Evidence) -> Finding:
    """With 100 records the bounds are tighter, over twice so above nominal epsilon 1."""
    found = _statistics(evidence, "eps_lower_bound")
    ratios = {e: float(found[_SMALL, e]) / float(found[_LARGE, e]) for size, e in found if size == _SMALL}
    text = ", ".join(f"ε = {number(e)}: {ratio:.2f}" for e, ratio in ratios.items())
    holds = all(ratio > (2 if e > _TWICE_ABOVE else 1) for e, ratio in ratios.items())
    return decided(
        holds, PRINTED, f"Lower bounds with 100 records over those with 60,000: {text}; 2 is claimed above ε = 1"
    )


def advantage_in_closed_form(evidence: Evidence) -> Finding:
    """The printed bounds on the advantage are (e^epsilon - 1 + 2 delta)/(e^epsilon + 1), delta = 1/|D|."""
    printed = _statistics(evidence, "membership_advantage_upper_bound")
    formed = {(size, e): f"{(math.exp(e) - 1 + 2 / _SIZES[size]) / (math.exp(e) + 1):.2f}" for size, e in printed}
    wrong = [
        f"{size}, ε = {number(e)}: {formed[size, e]} against {printed[size, e]}"
        for size, e in printed
        if formed[size, e] != printed[size, e]
    ]
    measured = _statistics(evidence, "membership_advantage")
    above = [key for key, value in measured.items() if float(value) > float(printed[key])]
    text = f"(e^ε − 1 + 2δ)/(e^ε + 1) with δ = 1/|D| gives {len(printed) - len(wrong)} of {len(printed)} printed bounds"
    text += f" (not {'; '.join(wrong)})" if wrong else ""
    text += f"; {len(measured) - len(above)} of {len(measured)} measured advantages lie below theirs"
    return decided(not wrong and not above, COMPUTED, text)


def protocol(evidence: Evidence) -> Finding:
    """The numbers of models add up, and are enough to see a violation."""
    per_set = _MODELS - _RESERVED
    least = 1 - ((1 - _CONFIDENCE) / 2) ** (1 / per_set)  # Clopper-Pearson, no false positive seen
    largest = math.log((1 - least - 1 / _SIZES[_SMALL]) / least)
    highest = max(e for _, e in _statistics(evidence, "eps_lower_bound"))
    text = (
        f"2 x ({_MODELS:,} − {_RESERVED:,}) = {2 * per_set:,} models; {per_set:,} without a single error would show a "
        f"lower bound of {largest:.1f}, above the largest nominal ε of {number(highest)}"
    )
    if 2 * per_set != _EVALUATED or largest <= highest:
        return decided(False, COMPUTED, text)
    return undecided(f"{_NO_AUDIT}: that the procedure finds what Table 9 prints is not tested", text)


def blank_canary(evidence: Evidence) -> Finding:
    """A blank image is the easiest to find."""
    return undecided(
        f"{_NO_AUDIT}: the study has no models trained with and without a canary, and Table 9 has one only"
    )


def audit_with_copies(evidence: Evidence) -> Finding:
    """Augmentation multiplicity does not change the audit."""
    base = _statistics(evidence, "eps_lower_bound")[_SMALL, 1.0]
    return undecided(
        f"{_NO_AUDIT}: the study has no attacked models with and without augmentation",
        f"Without augmentation the bound is {base}; the one with K = 16 is not printed",
    )


CLAIMS = {
    ("A.2, Table 9", "Audit: no violation"): no_violation,
    ("A.2", "Bounds with |D|=100"): tighter_on_small_sets,
    ("A.2", "Membership advantage upper bound"): advantage_in_closed_form,
    ("A.2", "Audit protocol"): protocol,
    ("A.2", "A blank image"): blank_canary,
    ("A.2", "Augmentation multiplicity"): audit_with_copies,
}
