"""Claims of de2022 about noise and the number of steps (sections 1, 4.2, 5, 6, B.5)."""

import math
from collections.abc import Callable, Mapping, Sequence

from dpstudy.privacy.printed import upper_bound
from dpstudy.tables.claims.de2022_batches import larger_batches, optimal_settings
from dpstudy.tables.claims.de2022_printed import CIFAR10
from dpstudy.tables.claims.de2022_settings import Setting, records, settings, spent
from dpstudy.tables.claims.de2022_techniques import by_number, is_deep, measured, setting
from dpstudy.tables.claims.finding import (
    CELLS,
    COMPUTED,
    FAILS,
    HOLDS,
    OPEN,
    PRINTED,
    TIMED,
    TOLERATED,
    Finding,
    Part,
    decided,
    judged,
    noted,
    number,
    on_cells,
    undecided,
)
from dpstudy.tables.claims.grid import Value
from dpstudy.tables.claims.role_evidence import Evidence
from dpstudy.tables.claims.scores import Run
from dpstudy.tables.claims.training_accuracy import on_training
from dpstudy.tables.published import TIMINGS, published_rows

_OPTIMUM = (3.0, 2500, 4096, 1e-5, 8.0)  # Figure 6: noise multiplier, steps, batch, delta, epsilon
_ABOUT = 0.02  # relative difference of epsilons that still reads as the same
_TIMED_NETWORK, _MUCH = "NF-ResNet-50", 2.0  # of section 6, where an update takes about 9 times as long
_LINEAR = 0.25  # departure from 1 of an exponent that still reads as about linear


def optimal_noise(deep: bool) -> Callable[[Evidence], Finding]:
    """The function that judges Figures 6 and 10: more noise with more steps helps only up to a point."""

    def claim(evidence: Evidence) -> Finding:
        groups = by_number(
            evidence.ours, "noise", lambda run: setting(run, "noise_multiplier"), lambda run: is_deep(run) == deep
        )
        groups = [group for group in groups if len(group) > 2]
        best = [max(group[1:-1], key=lambda run: run.accuracy.mean) for group in groups]
        parts = [
            Part.of(
                f"Best noise between over the {name}", [_against(b, g[end]) for b, g in zip(best, groups, strict=True)]
            )
            for name, end in (("least", 0), ("most", -1))
        ]
        if measured(groups):
            parts += [
                Part.of(
                    f"The same on training records, over the {name}",
                    [_against(b, g[end], on_training) for b, g in zip(best, groups, strict=True)],
                )
                for name, end in (("least", 0), ("most", -1))
            ]
        missing = "The study has no cells at three or more noise multipliers in the role noise"
        finding = on_cells(parts, f"{missing} with WRN-40-4" if deep else missing)
        text = ", ".join(f"σ = {setting(run, 'noise_multiplier'):g}, T = {setting(run, 'steps'):,}" for run in best)
        return noted(finding, here=f"Best between: {text}" if best else "")

    return claim


def _against(best: Run, other: Run, value: Callable[[Run], Value | None] = lambda run: run.accuracy) -> tuple:
    return f"{best.dataset} {number(best.epsilon)}", value(best), value(other)


def noise_at_the_optimum(evidence: Evidence) -> Finding:
    """Judge the claim of Figure 6 on the optimum, and whether its noise and steps spend the stated epsilon."""
    sigma, steps, batch, delta, epsilon = _OPTIMUM
    size = records(evidence, CIFAR10)[1]
    epsilon_spent = spent(sigma, steps, batch / size, delta)
    text = f"σ = {sigma:g}, T = {steps:,}, B = {batch:,}, N = {size:,} spend ε = {upper_bound(epsilon_spent, places=2)}"
    if abs(epsilon_spent / epsilon - 1) > _ABOUT:
        return decided(False, COMPUTED, text)
    return noted(optimal_noise(deep=False)(evidence), text)


def three_rules(evidence: Evidence) -> Finding:
    """Judge the claim: steps have an optimum, more epochs and larger batches help, and the rate has two regimes."""
    findings = [judge(evidence) for judge in (optimal_noise(False), larger_batches, optimal_settings(False))]
    verdicts = {each.verdict for each in findings}
    verdict = FAILS if FAILS in verdicts else OPEN if OPEN in verdicts else HOLDS
    here = ". ".join(f"({i}) {each.here}" for i, each in enumerate(findings, start=1))
    return Finding(verdict, "" if verdict == OPEN else CELLS, "", here)


def steps_with_epsilon(evidence: Evidence) -> Finding:
    """Judge the claim: the best number of steps grows in proportion to epsilon."""
    exponents = {table: _exponent(of_table) for table, of_table in _by_table(evidence).items()}
    wrong = [table for table, exponent in exponents.items() if abs(exponent - 1) > _LINEAR]
    text = "T as a power of ε in the tables of best settings, 1 being linear: "
    text += ", ".join(f"Table {table} {exponent:.2f}" for table, exponent in exponents.items())
    text += f". {len(wrong)} of {len(exponents)} depart by more than {_LINEAR:g}"
    verdict, here = judged(_proportional(evidence), "The study has no cells at several steps and epsilons (iterations)")
    if verdict != OPEN:
        return Finding(verdict, CELLS, text, here)
    if len(wrong) > TOLERATED * len(exponents):
        return decided(False, PRINTED, text, here)
    return undecided(here, text)


def _by_table(evidence: Evidence) -> dict[str, list[Setting]]:
    """The settings of tables that have several epsilons, at the table's most frequent batch size."""
    tables: dict[str, list[Setting]] = {}
    for one in settings(evidence):
        if not math.isinf(one.epsilon):
            tables.setdefault(one.table, []).append(one)
    kept = {}
    for table, of_table in tables.items():
        sizes = [one.batch for one in of_table]
        kept[table] = [one for one in of_table if one.batch == max(sizes, key=sizes.count)]
    return {table: of_table for table, of_table in kept.items() if len({one.epsilon for one in of_table}) > 1}


def _exponent(found: Sequence[Setting]) -> float:
    low, high = (pick(found, key=lambda one: one.epsilon) for pick in (min, max))
    return math.log(high.steps / low.steps) / math.log(high.epsilon / low.epsilon)


def _proportional(evidence: Evidence) -> list[Part]:
    """From the best steps at the smallest epsilon: whether steps in proportion are best at the others."""
    groups = by_number(evidence.ours, "iterations", lambda run: setting(run, "steps"))
    others, unchanged = [], []
    for dataset in dict.fromkeys(group[0].dataset for group in groups):
        first, *rest = sorted((g for g in groups if g[0].dataset == dataset), key=lambda g: g[0].epsilon)
        best = max(first, key=lambda run: run.accuracy.mean)
        for group in rest:
            steps = setting(best, "steps")
            ruled = _nearest(group, steps * group[0].epsilon / first[0].epsilon)
            others += [(*_against(ruled, run),) for run in group if run is not ruled]
            if (same := _nearest(group, steps)) is not ruled:
                unchanged.append(_against(ruled, same))
    return [
        Part.not_below("Steps in proportion to ε not below other numbers of steps", others),
        Part.of("Steps in proportion to ε over those of the smallest ε", unchanged),
    ]


def _nearest(group: Sequence[Run], steps: float) -> Run:
    return min(group, key=lambda run: abs(math.log(setting(run, "steps") / steps)))


def cost(evidence: Evidence) -> Finding:
    """Judge the claim: private training takes much more time per update, of the network it names, and more epochs."""
    epochs_by_layers = {}
    for one in settings(evidence):
        if one.table == "23":
            epochs = one.steps * one.batch / records(evidence, one.dataset)[0]
            epochs_by_layers[one.method.partition("(")[2].rstrip(")"), math.isinf(one.epsilon)] = epochs
    text = ", ".join(
        f"{layers}: {epochs:.0f} epochs with privacy, {epochs_by_layers[layers, True]:.0f} without"
        for (layers, free), epochs in epochs_by_layers.items()
        if not free
    )
    text = f"Table 23, Places-365: {text}"
    if any(epochs <= epochs_by_layers[layers, True] for (layers, free), epochs in epochs_by_layers.items() if not free):
        return decided(False, PRINTED, text)
    timings = published_rows(TIMINGS, "de2022")
    here = "An update with privacy takes, of one without on the same images: "
    here += ", ".join(f"{row['network']} ({_timed(row)}) {row['times']} times" for row in timings)
    of_the_paper = [float(row["times"]) for row in timings if row["network"] == _TIMED_NETWORK]
    return decided(min(of_the_paper) >= _MUCH, TIMED, text, here)


def _timed(row: Mapping[str, str]) -> str:
    copies = f", K = {row['copies']}" if row["copies"] != "1" else ""
    return f"{row['precision']}{copies}, {row['device']}"


noise_at_the_optimum_of_wrn_40 = optimal_noise(deep=True)
