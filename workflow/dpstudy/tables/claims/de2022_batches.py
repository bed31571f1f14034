"""Claims of de2022 about the batch size: accuracy, best steps and learning rate (section 5, Figures 2, 7 and 11)."""

import math
from collections.abc import Callable, Sequence

from dpstudy.tables.claims.de2022_techniques import by_number, is_deep, measured, setting
from dpstudy.tables.claims.finding import CELLS, FAILS, HOLDS, Finding, Part, noted, on_cells, undecided
from dpstudy.tables.claims.role_evidence import Evidence
from dpstudy.tables.claims.scores import Run, Scores, ends, up
from dpstudy.tables.claims.training_accuracy import gap

_TURN = 0.5  # exponents of the batch size below it read as constant, from it on as proportional
_FEWEST = 4  # batch sizes at which two regimes can be told apart
_NO_BATCHES = f"The study has no learning rates and steps tuned at {_FEWEST} or more batch sizes (the role batches"


def batch_groups(scores: Scores, deep: bool) -> list[list[Run]]:
    """Lists of runs that differ in batch size, from the smallest to the largest."""
    return by_number(scores, "batches", lambda run: setting(run, "batch_size"), lambda run: is_deep(run) == deep)


def larger_batches(evidence: Evidence) -> Finding:
    """Judge the claim: accuracy rises with the (retuned) batch size, and on training records it rises more."""
    groups = batch_groups(evidence.ours, deep=False)
    parts = [Part.of("Larger batch over the next smaller", up(groups)), Part.of("Largest over smallest", ends(groups))]
    if measured(groups):
        gaps = ends(groups, value=gap)
        parts.append(Part.of("What training records are ahead of test records, largest over smallest", gaps))
    finding = on_cells(parts, "The study has no cells of several batch sizes in the role batches")
    return noted(finding, "Figure 2 alone; section 5 has a gain of about 8 points from B = 256 to 16,384")


def optimal_settings(deep: bool) -> Callable[[Evidence], Finding]:
    """The function that judges Figures 7 and 11: how optimal steps, epochs and learning rate vary with batch size.

    Tuned settings have no standard error: they are compared as found.
    """

    def claim(evidence: Evidence) -> Finding:
        groups = [[run for run in group if _tuned(run)] for group in batch_groups(evidence.ours, deep)]
        groups = [group for group in groups if len(group) >= _FEWEST]
        if not groups:
            return undecided(f"{_NO_BATCHES}{', WRN-40-4)' if deep else ')'}")
        broken = {rule: [g[0].dataset for g in groups if not holds(g)] for rule, holds in _RULES.items()}
        text = ". ".join(f"{rule}: {'no' if broken[rule] else 'yes'}" for rule in _RULES)
        shown = "; ".join(_shown(run) for group in groups for run in group)
        verdict = FAILS if any(broken.values()) else HOLDS
        return Finding(verdict, CELLS, "", f"{text}. {shown}. As found")

    return claim


def _shown(run: Run) -> str:
    size, steps, rate = (setting(run, name) for name in ("batch_size", "steps", "learning_rate_applied"))
    return f"B = {size:,}: T = {steps:,}, η = {rate:g}"


def _tuned(run: Run) -> bool:
    """Whether a search chose its settings: others show what somebody thought best."""
    named = (setting(run, name) for name in ("steps", "learning_rate_applied"))
    source = run.metrics.get("tuned_on", "")
    return (source == "validation" or source.endswith("; the rest on validation")) and None not in named


def _exponents(group: Sequence[Run], name: str) -> tuple[float, float]:
    """How a setting goes with the batch size, as a power of it: in the lower half of the sizes, and in the upper."""
    middle = len(group) // 2
    return _slope(group[0], group[middle], name), _slope(group[middle], group[-1], name)


def _slope(low: Run, high: Run, name: str) -> float:
    return math.log(setting(high, name) / setting(low, name)) / math.log(
        setting(high, "batch_size") / setting(low, "batch_size")
    )


def _turn(group: Sequence[Run], turned: Callable[[Run, Run], bool]) -> int:
    """The first of the batch sizes from which on something is so."""
    pairs = list(zip(group, group[1:], strict=False))
    return next((i for i, pair in enumerate(pairs) if turned(*pair)), len(pairs))


def _turns_together(group: Sequence[Run]) -> bool:
    """The epochs (steps times batch) begin to rise where the rate ends rising, to one batch size."""
    rate = _turn(group, lambda low, high: _slope(low, high, "learning_rate_applied") < _TURN)
    epochs = _turn(group, lambda low, high: 1 + _slope(low, high, "steps") >= _TURN)
    return abs(rate - epochs) <= 1


def _first_then(name: str, low: tuple[float, float], high: tuple[float, float]) -> Callable[[Sequence[Run]], bool]:
    """Whether the exponents of a setting lie within bounds, in the lower half and in the upper."""

    def holds(group: Sequence[Run]) -> bool:
        return all(
            least <= exponent < most
            for exponent, (least, most) in zip(_exponents(group, name), (low, high), strict=True)
        )

    return holds


_CONSTANT, _RISING, _FALLING = (-_TURN, _TURN), (_TURN, math.inf), (-math.inf, -_TURN)
_RULES = {
    "Steps fall, then are constant (epochs constant, then proportional to B)": _first_then(
        "steps", _FALLING, _CONSTANT
    ),
    "Rate proportional to B, then constant": _first_then("learning_rate_applied", _RISING, _CONSTANT),
    "Epochs rise from where the rate does not": _turns_together,
}


settings_by_batch = optimal_settings(deep=False)
settings_by_batch_of_wrn_40 = optimal_settings(deep=True)
