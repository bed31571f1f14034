"""Claims of de2022 about its audit by membership inference (appendix A.2, Tables 8 and 9)."""

import math
from collections.abc import Mapping

from dpstudy.privacy.printed import lower_bound
from dpstudy.tables.claims.finding import CELLS, COMPUTED, PRINTED, Finding, decided, number, undecided
from dpstudy.tables.claims.role_evidence import Evidence
from dpstudy.tables.claims.scores import Run

_SMALL, _LARGE = "|D|=100", "|D|=60K"
_SIZES = {_LARGE: 60_000, _SMALL: 100}
_TWICE_ABOVE = 1.0  # the nominal epsilon above which the bounds are said to be over twice as strong
_MODELS, _RESERVED, _EVALUATED = 500_000, 10_000, 980_000  # phase II: on each of D and D + z, for the threshold, in all
_CONFIDENCE = 0.999
_SAME = 0.1  # of the nominal epsilon: bounds that differ by less are called almost unchanged
_NO_AUDIT = "The study has no cells in the role audit that `black_box` attacks (studies/de2022-audit-small.yaml)"


def _attacked(evidence: Evidence, role: str = "audit") -> list[Run]:
    """The attacked cells in a role, of all sizes of the data set, by records and epsilon."""
    runs = [run for run in (*evidence.ours.runs, *evidence.ours.resized) if run.role == role and run.black_box]
    return sorted(runs, key=lambda run: (run.black_box["records"], run.epsilon))


def _name(run: Run) -> str:
    return f"|D| = {run.black_box['records']:,}, ε = {number(run.epsilon)}"


def _statistics(evidence: Evidence, metric: str) -> dict[tuple[str, float], str]:
    """(|D|, nominal epsilon) -> one statistic of Table 9, as printed."""
    return {
        (row["method"].partition("(")[2].rstrip(")"), float(row["epsilon"])): row["value"]
        for row in evidence.rows
        if row["table"] == "9" and row["metric"] == metric
    }


def no_violation(evidence: Evidence) -> Finding:
    """Judge the claim: every lower bound lies below the nominal epsilon."""
    lower = _statistics(evidence, "eps_lower_bound")
    above = [f"{size}, ε = {number(e)}" for (size, e), value in lower.items() if float(value) >= e]
    share = max(float(value) / e for (_, e), value in lower.items())
    text = f"{len(lower) - len(above)} of {len(lower)} lower bounds of Table 9 below the nominal ε, at most {share:.0%}"
    text += f"; not {', '.join(above)}" if above else ""
    runs = _attacked(evidence)
    if not runs:
        return decided(not above, PRINTED, text, f"{_NO_AUDIT}; ledgers certify upper bounds")
    refuted = [_name(run) for run in runs if run.black_box["epsilon_lower"] > run.black_box["epsilon_certified"]]
    most = max(run.black_box["epsilon_lower"] / run.epsilon for run in runs)
    here = f"{len(runs) - len(refuted)} of {len(runs)} attacked cells are consistent with what they certify; the lower "
    here += f"bounds reach {most:.0%} of the nominal ε" + (f"; refuted: {', '.join(refuted)}" if refuted else "")
    return decided(not refuted, CELLS, text, here)


def tighter_on_small_sets(evidence: Evidence) -> Finding:
    """Judge the claim: with 100 records the bounds are tighter, over twice so above nominal epsilon 1."""
    printed = {(size, e): float(v) for (size, e), v in _statistics(evidence, "eps_lower_bound").items()}
    holds, text = _tighter({e: printed[_SMALL, e] / printed[_LARGE, e] for size, e in printed if size == _SMALL})
    text = f"Lower bounds with 100 records over those with 60,000: {text}; 2 is claimed above ε = 1"
    ours = {(run.black_box["records"], run.epsilon): run.black_box["epsilon_lower"] for run in _attacked(evidence)}
    few, many = (min(sizes), max(sizes)) if (sizes := {size for size, _ in ours}) else (0, 0)
    both = {e: ours[few, e] / ours[many, e] for size, e in ours if size == few < many and ours.get((many, e))}
    if not both:
        return decided(holds, PRINTED, text, "The study attacks no cells on two numbers of records")
    holds, here = _tighter(both)
    return decided(holds, CELLS, text, f"Lower bounds with {few:,} records over those with {many:,}: {here}")


def _tighter(ratios: Mapping[float, float]) -> tuple[bool, str]:
    """Whether ratios by nominal epsilon are as claimed, and the ratios as text."""
    holds = all(ratio > (2 if e > _TWICE_ABOVE else 1) for e, ratio in ratios.items())
    return holds, ", ".join(f"ε = {number(e)}: {ratio:.2f}" for e, ratio in ratios.items())


def advantage_in_closed_form(evidence: Evidence) -> Finding:
    """Judge the printed bounds on the advantage: (e^epsilon - 1 + 2 delta)/(e^epsilon + 1), delta = 1/|D|."""
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
    """Judge the claim: the numbers of models add up, and are enough to see a violation."""
    per_set = _MODELS - _RESERVED
    least = 1 - ((1 - _CONFIDENCE) / 2) ** (1 / per_set)  # Clopper-Pearson, no false positive seen
    largest = math.log((1 - least - 1 / _SIZES[_SMALL]) / least)
    highest = max(e for _, e in _statistics(evidence, "eps_lower_bound"))
    text = (
        f"2 x ({_MODELS:,} − {_RESERVED:,}) = {2 * per_set:,} models; {per_set:,} without a single error would show a "
        f"lower bound of {lower_bound(largest, places=1)}, above the largest nominal ε of {number(highest)}"
    )
    runs = _attacked(evidence)
    counts = sorted({run.black_box["held_out"] + run.black_box["runs"] for run in runs})
    here = f"Here {', '.join(f'{count:,}' for count in counts)} models a side" if runs else _NO_AUDIT
    if 2 * per_set != _EVALUATED or largest <= highest:
        return decided(False, COMPUTED, text, here)
    return undecided(f"{here}: that the procedure finds what Table 9 prints takes {_MODELS:,}", text)


def blank_canary(evidence: Evidence) -> Finding:
    """Judge the claim: a blank image is the easiest canary to find, with the most distant losses in phase I."""
    printed = "Table 9 has a blank image only; of the others nothing is printed"
    won = counted = 0
    for run in _attacked(evidence):
        settings: dict[tuple, dict[str, float]] = {}
        for tried in run.black_box["tried"]:
            setting = (tried["learning_rate"], tried["clipping_norm"], tried.get("steps"))
            settings.setdefault(setting, {})[tried["canary"]] = tried["distance"]
        several = [distances for distances in settings.values() if len(distances) > 1 and "blank" in distances]
        counted += len(several)
        won += sum(distances["blank"] == max(distances.values()) for distances in several)
    if not counted:
        return undecided(f"{_NO_AUDIT}, with a blank image among several canaries", printed)
    runs = [run for run in _attacked(evidence) if run.black_box["chosen"]["canary"] != "blank"]
    here = f"A blank image is the easiest to tell at {won} of {counted} settings of phase I"
    here += f"; another canary was chosen at {', '.join(map(_name, runs))}" if runs else ", and chosen everywhere"
    return decided(not runs and won > counted / 2, CELLS, printed, here)


def audit_with_copies(evidence: Evidence) -> Finding:
    """Judge the claim: augmentation multiplicity does not change the audit."""
    base = _statistics(evidence, "eps_lower_bound")[_SMALL, 1.0]
    printed = f"Without augmentation the bound is {base}; the one with K = 16 is not printed"
    alone = {(run.black_box["records"], run.epsilon): run for run in _attacked(evidence)}
    pairs = [
        (alone[key], run)
        for run in _attacked(evidence, "audit-copies")
        if (key := (run.black_box["records"], run.epsilon)) in alone
    ]
    if not pairs:
        return undecided("The study attacks no cells in the roles audit and audit-copies at one epsilon", printed)
    texts, same = [], True
    for without, run in pairs:
        bounds = [one.black_box["epsilon_lower"] for one in (without, run)]
        copies = run.metrics["hyperparameters"].get("augmentation", {}).get("multiplicity", 1)
        texts.append(f"{_name(run)}: {bounds[0]:.3f} without, {bounds[1]:.3f} with K = {copies}")
        same &= abs(bounds[1] - bounds[0]) <= _SAME * run.epsilon
    return decided(same, CELLS, printed, f"{'; '.join(texts)}; a tenth of the nominal ε counts as unchanged")
