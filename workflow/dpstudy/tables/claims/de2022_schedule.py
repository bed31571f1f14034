"""Claims of de2022 about noise, the number of steps, and batch sizes (sections 1, 4.2, 5, 6, B.5, B.6; Figures 2, 6, 7,
10, 11)."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise

from dpstudy.privacy.printed import upper_bound
from dpstudy.tables.claims.de2022_printed import CIFAR10
from dpstudy.tables.claims.de2022_privacy import ABOUT, Setting, records, settings, spent
from dpstudy.tables.claims.de2022_techniques import by_number, is_deep, measured, setting
from dpstudy.tables.claims.finding import (
    CELLS,
    COMPUTED,
    MEASUREMENT,
    OPEN,
    PRINTED,
    TOLERATED,
    Finding,
    Part,
    decided,
    noted,
    on_cells,
    undecided,
    worst,
)
from dpstudy.tables.claims.grid import Value
from dpstudy.tables.claims.scores import Evidence, Run, Scores, accuracy, ends, gap, grouped, on_training, up
from dpstudy.tables.published import TIMINGS, published_rows

_OPTIMUM = (3.0, 2500, 4096, 1e-5, 8.0)  # Figure 6: noise multiplier, steps, batch, delta, epsilon
_TIMED_NETWORK, _MUCH = "NF-ResNet-50", 2.0  # of section 6, where an update takes about 9 times as long
_LINEAR = 0.25  # departure from 1 of an exponent that still reads as about linear
_TURN = 0.5  # exponents of the batch size below it read as constant, from it on as proportional
_FEWEST = 4  # batch sizes at which two regimes can be told apart
_NO_BATCHES = f"The study has no learning rates and steps tuned at {_FEWEST} or more batch sizes (the role batches"


def optimal_noise(deep: bool) -> Callable[[Evidence], Finding]:
    """The function that judges Figures 6 and 10: more noise with more steps helps only up to a point."""

    def claim(evidence: Evidence) -> Finding:
        groups = by_number(evidence.ours, "noise", "noise_multiplier", lambda run: is_deep(run) == deep)
        groups = [group for group in groups if len(group) > 2]
        best = [max(group[1:-1], key=lambda run: run.accuracy.number) for group in groups]
        texts = {"Best noise between over the": accuracy}
        if measured(groups):
            texts["The same on training records, over the"] = on_training
        parts = [
            Part.of(f"{text} {name}", [_against(b, g[end], value) for b, g in zip(best, groups, strict=True)])
            for text, value in texts.items()
            for name, end in (("least", 0), ("most", -1))
        ]
        missing = "The study has no cells at three or more noise multipliers in the role noise"
        finding = on_cells(parts, f"{missing} with WRN-40-4" if deep else missing)
        text = ", ".join(f"σ = {setting(run, 'noise_multiplier'):g}, T = {setting(run, 'steps'):,}" for run in best)
        return noted(finding, here=f"Best between: {text}" if best else "")

    return claim


def _against(
    best: Run, other: Run, value: Callable[[Run], Value | None] = accuracy
) -> tuple[str, Value | None, Value | None]:
    return best.at, value(best), value(other)


def noise_at_the_optimum(evidence: Evidence) -> Finding:
    """Judge the claim of Figure 6 on the optimum, and whether its noise and steps spend the stated epsilon."""
    sigma, steps, batch, delta, epsilon = _OPTIMUM
    size = records(evidence, CIFAR10)[1]
    found = spent(sigma, steps, batch / size, delta)
    text = f"σ = {sigma:g}, T = {steps:,}, B = {batch:,}, N = {size:,} spend ε = {upper_bound(found, places=2)}"
    if abs(found / epsilon - 1) > ABOUT:
        return decided(False, COMPUTED, text)
    return noted(optimal_noise(deep=False)(evidence), text)


def three_rules(evidence: Evidence) -> Finding:
    """Judge the claim: steps have an optimum, more epochs and larger batches help, and the rate has two regimes."""
    findings = [judge(evidence) for judge in (optimal_noise(False), larger_batches, optimal_settings(False))]
    verdict = worst(each.verdict for each in findings)
    here = ". ".join(f"({i}) {each.here}" for i, each in enumerate(findings, start=1))
    return Finding(verdict, "" if verdict == OPEN else CELLS, "", here)


def steps_with_epsilon(evidence: Evidence) -> Finding:
    """Judge the claim: the best number of steps grows in proportion to epsilon."""
    exponents = _exponents_by_table(settings(evidence))
    wrong = sum(abs(exponent - 1) > _LINEAR for exponent in exponents.values())
    text = "T as a power of ε in the tables of best settings, 1 being linear: "
    text += ", ".join(f"Table {table} {exponent:.2f}" for table, exponent in exponents.items())
    text += f". {wrong} of {len(exponents)} depart by more than {_LINEAR:g}"
    missing = "The study has no cells at several steps and epsilons (iterations)"
    found = on_cells(_proportional(evidence.ours), missing, text)
    if found.verdict == OPEN and wrong > TOLERATED * len(exponents):
        return decided(False, PRINTED, text, found.here)
    return found


def _exponents_by_table(found: Iterable[Setting]) -> dict[str, float]:
    """Steps as a power of epsilon in tables that have several epsilons, at the table's most frequent batch size."""
    exponents = {}
    for of_table in grouped((one for one in found if not math.isinf(one.epsilon)), lambda one: one.table):
        sizes = [one.batch for one in of_table]
        kept = [one for one in of_table if one.batch == max(sizes, key=sizes.count)]
        low, high = (pick(kept, key=lambda one: one.epsilon) for pick in (min, max))
        if low.epsilon < high.epsilon:
            exponents[low.table] = math.log(high.steps / low.steps) / math.log(high.epsilon / low.epsilon)
    return exponents


def _proportional(scores: Scores) -> list[Part]:
    """From the best steps at the smallest epsilon: whether steps in proportion are best at the others."""
    groups = by_number(scores, "iterations", "steps")
    others, unchanged = [], []
    for dataset in dict.fromkeys(group[0].dataset for group in groups):
        first, *rest = sorted((g for g in groups if g[0].dataset == dataset), key=lambda g: g[0].epsilon)
        best = max(first, key=lambda run: run.accuracy.number)
        for group in rest:
            steps = setting(best, "steps")
            ruled = _nearest(group, steps * group[0].epsilon / first[0].epsilon)
            others += [_against(ruled, run) for run in group if run is not ruled]
            if (same := _nearest(group, steps)) is not ruled:
                unchanged.append(_against(ruled, same))
    return [
        Part.of("Steps in proportion to ε not below other numbers of steps", others, margin=0.0),
        Part.of("Steps in proportion to ε over those of the smallest ε", unchanged),
    ]


def _nearest(group: Sequence[Run], steps: float) -> Run:
    return min(group, key=lambda run: abs(math.log(setting(run, "steps") / steps)))


def cost(evidence: Evidence) -> Finding:
    """Judge the claim: private training takes much more time per update, of the network it names, and more epochs."""
    epochs = {}
    for one in (one for one in settings(evidence) if one.table == "23"):
        layers = one.method.partition("(")[2].rstrip(")")
        epochs[layers, math.isinf(one.epsilon)] = one.epochs(records(evidence, one.dataset)[0])
    both = [(layers, private, epochs[layers, True]) for (layers, free), private in epochs.items() if not free]
    text = ", ".join(f"{layers}: {one:.0f} epochs with privacy, {free:.0f} without" for layers, one, free in both)
    text = f"Table 23, Places-365: {text}"
    if any(private <= free for _, private, free in both):
        return decided(False, PRINTED, text)
    timings = published_rows(TIMINGS, "de2022")
    here = "An update with privacy takes, of one without on the same images: "
    here += ", ".join(f"{row['network']} ({_timed(row)}) {row['times']} times" for row in timings)
    of_the_paper = [float(row["times"]) for row in timings if row["network"] == _TIMED_NETWORK]
    return decided(min(of_the_paper) >= _MUCH, MEASUREMENT, f"{text}.", here)


def _timed(row: Mapping[str, str]) -> str:
    copies = f", K = {row['copies']}" if row["copies"] != "1" else ""
    return f"{row['precision']}{copies}, {row['device']}"


def _batch_groups(scores: Scores, deep: bool) -> list[list[Run]]:
    """Lists of runs that differ in batch size, from the smallest to the largest."""
    return by_number(scores, "batches", "batch_size", lambda run: is_deep(run) == deep)


def larger_batches(evidence: Evidence) -> Finding:
    """Judge the claim: accuracy rises with the (retuned) batch size, and on training records it rises more."""
    groups = _batch_groups(evidence.ours, deep=False)
    parts = [Part.of("Larger batch over the next smaller", up(groups)), Part.of("Largest over smallest", ends(groups))]
    if measured(groups):
        gaps = ends(groups, gap)
        parts.append(Part.of("What training records are ahead of test records, largest over smallest", gaps))
    printed = "Figure 2 alone; section 5 has a gain of about 8 points from B = 256 to 16,384"
    return on_cells(parts, "The study has no cells of several batch sizes in the role batches", printed)


def optimal_settings(deep: bool) -> Callable[[Evidence], Finding]:
    """The function that judges Figures 7 and 11: how optimal steps, epochs and learning rate vary with batch size.

    Tuned settings have no standard error: they are compared as found.
    """

    def claim(evidence: Evidence) -> Finding:
        groups = [[run for run in group if _tuned(run)] for group in _batch_groups(evidence.ours, deep)]
        groups = [group for group in groups if len(group) >= _FEWEST]
        if not groups:
            return undecided(f"{_NO_BATCHES}{', WRN-40-4)' if deep else ')'}")
        kept = {rule: all(holds(group) for group in groups) for rule, holds in _RULES.items()}
        text = ". ".join(f"{rule}: {'yes' if so else 'no'}" for rule, so in kept.items())
        shown = "; ".join(_shown(run) for group in groups for run in group)
        return decided(all(kept.values()), CELLS, "", f"{text}. {shown}. As found")

    return claim


def _shown(run: Run) -> str:
    size, steps, rate = (setting(run, name) for name in ("batch_size", "steps", "learning_rate_applied"))
    return f"B = {size:,}: T = {steps:,}, η = {rate:g}"


def _tuned(run: Run) -> bool:
    """Whether a search chose its settings: others show what somebody thought best."""
    named = (setting(run, name) for name in ("steps", "learning_rate_applied"))
    source = run.metrics.get("tuned_on", "")
    return (source == "validation" or source.endswith("; the rest on validation")) and None not in named


def _slope(low: Run, high: Run, name: str) -> float:
    """How a setting goes with the batch size, as a power of it."""
    setting_grows, batch_grows = (setting(high, one) / setting(low, one) for one in (name, "batch_size"))
    return math.log(setting_grows) / math.log(batch_grows)


def _turn(group: Sequence[Run], turned: Callable[[Run, Run], bool]) -> int:
    """The first of the batch sizes from which on something is so."""
    return next((i for i, pair in enumerate(pairwise(group)) if turned(*pair)), len(group) - 1)


def _turns_together(group: Sequence[Run]) -> bool:
    """The epochs (steps times batch) begin to rise where the rate ends rising, to one batch size."""
    rate = _turn(group, lambda low, high: _slope(low, high, "learning_rate_applied") < _TURN)
    epochs = _turn(group, lambda low, high: 1 + _slope(low, high, "steps") >= _TURN)
    return abs(rate - epochs) <= 1


def _first_then(name: str, low: tuple[float, float], high: tuple[float, float]) -> Callable[[Sequence[Run]], bool]:
    """Whether the exponents of a setting lie within bounds, in the lower half of the sizes and in the upper."""

    def holds(group: Sequence[Run]) -> bool:
        first, middle, last = group[0], group[len(group) // 2], group[-1]
        return low[0] <= _slope(first, middle, name) < low[1] and high[0] <= _slope(middle, last, name) < high[1]

    return holds


_CONSTANT, _RISING, _FALLING = (-_TURN, _TURN), (_TURN, math.inf), (-math.inf, -_TURN)
_FALLING_STEPS = "Steps fall, then are constant (epochs constant, then proportional to B)"
_RULES = {
    _FALLING_STEPS: _first_then("steps", _FALLING, _CONSTANT),
    "Rate proportional to B, then constant": _first_then("learning_rate_applied", _RISING, _CONSTANT),
    "Epochs rise from where the rate does not": _turns_together,
}
noise_at_the_optimum_of_wrn_40 = optimal_noise(deep=True)
settings_by_batch, settings_by_batch_of_wrn_40 = optimal_settings(deep=False), optimal_settings(deep=True)
