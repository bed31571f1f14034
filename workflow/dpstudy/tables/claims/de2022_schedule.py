"""Claims of de2022 about noise, the number of steps, and batch sizes (sections 1, 4.2, 5, 6, B.5, B.6; Figures 2, 6, 7,
10, 11)."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise

from dpstudy.tables.claims.de2022_printed import CIFAR10
from dpstudy.tables.claims.de2022_privacy import ABOUT, Setting, records, settings
from dpstudy.tables.claims.de2022_techniques import by_number, measured, setting
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
from dpstudy.tables.claims.scores import Evidence, Run, Scores, accuracy, gap, on_training, up
from dpstudy.tables.grouping import grouped
from dpstudy.tables.published import TIMINGS, published_rows

_OPTIMUM = Setting("figure 6", CIFAR10, "DP-SGD", epsilon=8.0, delta=1e-5, batch=4096, sigma=3.0, steps=2500)
_TIMED_NETWORK, _MUCH = "NF-ResNet-50", 2.0  # of section 6, where an update takes about 9 times as long
_LINEAR = 0.25  # departure from 1 of an exponent that still reads as about linear
_RATE = "learning_rate_applied"
_TURN = 0.5  # exponents of the batch size below it read as constant, from it on as proportional
_FEWEST = 4  # batch sizes at which two regimes can be told apart
_FALLING_STEPS = "Steps fall, then are constant (epochs constant, then proportional to B)"
_NO_BATCHES = f"The study has no learning rates and steps tuned at {_FEWEST} or more batch sizes (the role batches"


def _optimal_noise(evidence: Evidence, deep: bool = False) -> Finding:
    """The finding on Figures 6 and 10: more noise with more steps helps only up to a point."""
    groups = [group for group in by_number(evidence.ours, "noise", "noise_multiplier", deep) if len(group) > 2]
    best = [max(group[1:-1], key=_accuracy) for group in groups]
    texts = {"Best noise between over the": accuracy}
    if measured(groups):
        texts["The same on training records, over the"] = on_training
    parts = [
        Part.of(f"{text} {name}", [(b.at, value(b), value(g[end])) for b, g in zip(best, groups, strict=True)])
        for text, value in texts.items()
        for name, end in (("least", 0), ("most", -1))
    ]
    missing = "The study has no cells at three or more noise multipliers in the role noise"
    text = ", ".join(f"σ = {setting(run, 'noise_multiplier'):g}, T = {setting(run, 'steps'):,}" for run in best)
    finding = on_cells(parts, f"{missing} with WRN-40-4" if deep else missing)
    return _open_if_narrow(noted(finding, here=f"Best between: {text}" if best else ""), groups)


def _accuracy(run: Run) -> float:
    return run.accuracy.number


def _open_if_narrow(finding: Finding, groups: Iterable[Iterable[Run]]) -> Finding:
    """The finding on what is best; open where a search chose what is at an end of its space."""
    found = {run.entry: run.metrics.get("tuning", {}).get("at_end", []) for group in groups for run in group}
    listed = "; ".join(f"{entry}: {' and '.join(names)}" for entry, names in found.items() if names)
    if not listed:
        return finding
    return undecided(f"{finding.here}. Searches chose what is at an end of their space ({listed})", finding.printed)


def noise_at_the_optimum(evidence: Evidence) -> Finding:
    """Judge the claim of Figure 6 on the optimum, and whether its noise and steps spend the stated epsilon."""
    one, size = _OPTIMUM, records(evidence, CIFAR10)[1]
    text = f"σ = {one.sigma:g}, T = {one.steps:,}, B = {one.batch:,}, N = {size:,} spend ε = {one.shown(size)}"
    if abs(one.off(size)) > ABOUT:
        return decided(False, COMPUTED, text)
    return noted(_optimal_noise(evidence), text)


def noise_at_the_optimum_of_wrn_40(evidence: Evidence) -> Finding:
    """Judge the claim of Figure 10 on the optimum."""
    return _optimal_noise(evidence, deep=True)


def three_rules(evidence: Evidence) -> Finding:
    """Judge the claim: steps have an optimum, more epochs and larger batches help, and the rate has two regimes."""
    findings = [judge(evidence) for judge in (_optimal_noise, larger_batches, settings_by_batch)]
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
    others, unchanged = [], []
    for of_one in grouped(by_number(scores, "iterations", "steps"), lambda group: group[0].dataset):
        first, *rest = sorted(of_one, key=lambda group: group[0].epsilon)
        best = max(first, key=lambda run: run.accuracy.number)
        for group in rest:
            steps = setting(best, "steps")
            ruled = _nearest(group, steps * group[0].epsilon / first[0].epsilon)
            others += [(ruled.at, ruled.accuracy, run.accuracy) for run in group if run is not ruled]
            if (same := _nearest(group, steps)) is not ruled:
                unchanged.append((ruled.at, ruled.accuracy, same.accuracy))
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


def larger_batches(evidence: Evidence) -> Finding:
    """Judge the claim: accuracy rises with the (retuned) batch size, and on training records it rises more."""
    groups = by_number(evidence.ours, "batches", "batch_size", deep=False)
    ends = [[group[0], group[-1]] for group in groups if len(group) > 1]
    parts = [Part.of("Larger batch over the next smaller", up(groups)), Part.of("Largest over smallest", up(ends))]
    if measured(groups):
        parts.append(Part.of("What training records are ahead of test records, largest over smallest", up(ends, gap)))
    printed = "Figure 2 alone; section 5 has a gain of about 8 points from B = 256 to 16,384"
    finding = on_cells(parts, "The study has no cells of several batch sizes in the role batches", printed)
    return _open_if_narrow(finding, groups)


def settings_by_batch(evidence: Evidence) -> Finding:
    """Judge the claims of Figure 7; see `_optimal_settings`."""
    return _optimal_settings(evidence, deep=False)


def settings_by_batch_of_wrn_40(evidence: Evidence) -> Finding:
    """Judge the claim that Figure 11 shows the same."""
    return _optimal_settings(evidence, deep=True)


def _optimal_settings(evidence: Evidence, deep: bool) -> Finding:
    """The finding on how optimal steps, epochs and learning rate vary with batch size.

    Tuned settings have no standard error: they are compared as found.
    """
    by_batch = by_number(evidence.ours, "batches", "batch_size", deep)
    groups = [group for runs in by_batch if len(group := _one_a_batch(runs)) >= _FEWEST]
    if not groups:
        return undecided(f"{_NO_BATCHES}{', WRN-40-4)' if deep else ')'}")
    rules = [_rules(group) for group in groups]
    kept = {rule: all(each[rule] for each in rules) for rule in rules[0]}
    text = ". ".join(f"{rule}: {'yes' if so else 'no'}" for rule, so in kept.items())
    found = [[setting(run, name) for name in ("batch_size", "steps", _RATE)] for group in groups for run in group]
    shown = "; ".join(f"B = {batch:,}: T = {steps:,}, η = {rate:g}" for batch, steps, rate in found)
    finding = decided(all(kept.values()), CELLS, "", f"{text}. {shown}. As found")
    return _open_if_narrow(finding, groups)


def _one_a_batch(runs: Iterable[Run]) -> list[Run]:
    """The best tuned run at each batch size, from the smallest."""
    tuned = grouped((run for run in runs if _tuned(run)), lambda run: setting(run, "batch_size"))
    return [max(of_one, key=_accuracy) for of_one in tuned]


def _tuned(run: Run) -> bool:
    """Whether a search chose its settings: others show what somebody thought best."""
    source = run.metrics.get("tuned_on", "")
    searched = source == "validation" or source.endswith("; the rest on validation")
    return searched and None not in (setting(run, "steps"), setting(run, _RATE))


def _slope(low: Run, high: Run, name: str) -> float:
    """How a setting goes with the batch size, as a power of it."""
    setting_grows, batch_grows = (setting(high, one) / setting(low, one) for one in (name, "batch_size"))
    return math.log(setting_grows) / math.log(batch_grows)


def _turn(group: Sequence[Run], turned: Callable[[Run, Run], bool]) -> int:
    """The first of the batch sizes from which on something is so."""
    return next((i for i, pair in enumerate(pairwise(group)) if turned(*pair)), len(group) - 1)


def _rules(group: Sequence[Run]) -> dict[str, bool]:
    """What is said of optimal settings by batch size -> whether they are so."""
    low, middle, high = group[0], group[len(group) // 2], group[-1]
    steps, rates = ([_slope(a, b, name) for a, b in ((low, middle), (middle, high))] for name in ("steps", _RATE))
    # Where the rate ends rising, and the epochs (steps times batch) begin to.
    rate = _turn(group, lambda low, high: _slope(low, high, _RATE) < _TURN)
    epochs = _turn(group, lambda low, high: 1 + _slope(low, high, "steps") >= _TURN)
    return {
        _FALLING_STEPS: steps[0] < -_TURN <= steps[1] < _TURN,
        "Rate proportional to B, then constant": rates[0] >= _TURN > rates[1] >= -_TURN,
        "Epochs rise from where the rate does not": abs(rate - epochs) <= 1,  # to one batch size
    }
