"""`dpstudy plan`: the budget that a study of your own images would spend, and the accuracy to expect, before it runs.

Only tables are read, and of the images none but the first. What is printed counts the owner's records, and is for the
owner alone.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from dpstudy import methods
from dpstudy.command.own_study import beside_the_book, read_own_study, together_mu
from dpstudy.command.planned_costs import feature_costs
from dpstudy.config.cells import Cell, unfold
from dpstudy.config.tuned import PUBLIC
from dpstudy.core.errors import StudyError
from dpstudy.core.files import write_json
from dpstudy.data.prepare import Sizes, data_root, look_through, sizes
from dpstudy.data.readers.image_table import unlisted
from dpstudy.evaluation.metrics import metric_of
from dpstudy.forecast.curves import CLASSES, OF_SEVERAL, ONE, SEVERAL, read
from dpstudy.forecast.decide import NOT, OPEN, WORTH, Plan, Useful, Verdict, verdict, what_would_do
from dpstudy.forecast.model import Forecast, Question, signal_of
from dpstudy.forecast.skill import value_of
from dpstudy.methods import operating_points
from dpstudy.methods.calibrated import needed_share, share_of
from dpstudy.methods.problem import Problem
from dpstudy.privacy import gaussian
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.printed import upper_bound
from dpstudy.schema.methods import hyperparameters

_EPSILON = " epsilon"  # as wide as its column


@dataclass(frozen=True)
class Expected:
    """A cell with its forecast; `verdict` is None where the method has no forecast curves."""

    cell: Cell
    method: str
    pull: float | None
    verdict: Verdict | None


def plan(study: str, json: str | None, figure: str | None = None) -> int:
    """Print the plan of each data set of the user's own; the exit status 0.

    Args:
        json: a file to write it to as well.
        figure: a PNG, PDF or SVG file, of the method that is expected to be best; of one data set.

    Raises:
        StudyError: the config or a table has a mistake, or `useful` cannot be answered.
    """
    loaded, names = read_own_study(study)
    for path in filter(None, (json, figure)):
        if not Path(path).absolute().parent.is_dir():
            raise StudyError(f"{path}: there is no folder {Path(path).parent}; make it first")
    if figure and len(names) > 1:
        raise StudyError(f"--figure {figure}: is of one data set, and {study} has {', '.join(names)}")
    root, contents = data_root(loaded["data_root"]), {}
    for name in names:
        entry = loaded["datasets"][name]
        for sentence in look_through(name, entry, root, entry["delta"]):
            print(f"datasets.{name}: {sentence}")
        if entry["reader"] == "image_table" and (others := unlisted(entry, root)):
            print(f"datasets.{name}: images in its folder that {entry['table']} has no row for: {len(others)}")
        known = sizes(name, entry, root)
        cells = [cell for cell in unfold(loaded) if cell.dataset == name]
        lines, content = planned(loaded, name, known, cells, figure)
        print("\n".join(lines))
        contents[name] = content
    if json:
        write_json(json, {"private": True, "datasets": contents}, private=True)
    return 0


def planned(
    study: dict, name: str, known: Sizes, cells: Sequence[Cell], figure: str | None = None
) -> tuple[list[str], dict]:
    """The printed plan of one data set, and the same as a mapping for JSON.

    Raises:
        StudyError: `useful` asks for what no curve has.
    """
    entry, delta = study["datasets"][name], float(study["datasets"][name]["delta"])
    most = entry.get("per_subject", 1) if entry["unit"] == "subject" else 1
    averaged, finite = entry.get("contributions") == "average", [cell for cell in cells if cell.epsilon != "inf"]
    scale = 1.0 if averaged else known.records / known.units / most
    what = Plan(known.units, sorted({float(cell.epsilon) for cell in finite}), delta, scale, entry["unit"] == "subject")
    mu = together_mu(study, finite)
    together = gaussian.epsilon_of(mu, delta) if finite else 0.0
    count, useful = len(finite) * len(study["seeds"]), _useful(study, known)
    models = f"{count} model{'s spend' if count != 1 else ' spends'}"
    points = read()
    forecasts = {name: Forecast(name, _task(known), points) for name in sorted({point.method for point in points})}
    expected = [_expected(study, cell, known, forecasts, useful, what, most) for cell in finite]
    lines = [
        *_sizes(name, known, entry, delta, most),
        *(f"  {sentence}" for sentence in beside_the_book(study, name)),
        f"  {models} about epsilon {upper_bound(together)} together, at delta {upper_bound(delta)}",
        *feature_costs(study, name, known, cells),
        "",
        *_table(expected, useful, what.persons),
        *_calibrated(study, finite, known, most),
    ]
    judged = [one for one in expected if one.verdict]
    if figure and judged:
        from dpstudy.forecast.drawing import draw  # Matplotlib

        top = max(judged, key=lambda one: one.verdict.share[1] if one.verdict else 0.0).method
        draw(figure, top, forecasts[top], _question(top, known, 0.0, useful), useful, what)
    decision, answer = _decision(expected, useful, forecasts, known, what)
    content = {
        "units": known.units,
        "records": known.records,
        "tested": known.tested,
        "delta": delta,
        "epsilon_together": together,
        "cells": {
            one.cell.path: {"pull": one.pull} | ({} if one.verdict is None else asdict(one.verdict)) for one in expected
        },
        "useful": study.get("useful"),
        "budget": study["release"].get("budget"),
        "decision": answer,
        "in_words": decision,
    }
    return [*lines, "", *decision], content


def _sizes(name: str, known: Sizes, entry: Mapping, delta: float, most: int) -> Iterator[str]:
    persons = entry["unit"] == "subject"
    units = f"{known.units:,} persons with {known.records:,} images" if persons else f"{known.units:,} images"
    yield f"{name} (for your eyes: this counts your records)"
    yield (
        f"  learned from: {units}"
        + (f", at most {most} of each" if persons else "")
        + (", averaged" if entry.get("contributions") == "average" else "")
        + f"; for the scores: {known.tested:,} images"
    )
    shares = ", ".join(f"{label} {100 * share:.3g} %" for label, share in zip(known.classes, known.shares, strict=True))
    yield f"  share of each label: {shares}"
    yield f"  delta {upper_bound(delta)} is {upper_bound(delta * known.units, 2)} of one over their number" + (
        "; a tenth of that at most is usual" if delta * known.units > 0.1 else ""
    )


def _calibrated(study: dict, cells: Sequence[Cell], known: Sizes, most: int) -> Iterator[str]:
    """Of which cells scores stay scores, and which calibration a run refuses."""
    entries_by_reason: dict[str, list[str]] = {}
    for cell in cells:
        options = cell.options(study)
        if options.get("calibration", PUBLIC) == PUBLIC:
            continue
        problem, asked = _problem(study, cell, known, most), options["calibration"]
        if isinstance(asked, str) and not share_of(problem, asked):
            why = "calibration: auto: too few units, so that scores only rank"
        elif options.get("thresholds") is True and not operating_points.share_of(problem):
            why = "thresholds: too few units, so that none can be told; leave `thresholds` out"
        elif not isinstance(asked, str) and asked < needed_share(problem):
            why = f"calibration: {asked:g} is too little for so few units, and a run refuses it"
        else:
            continue
        entries_by_reason.setdefault(why, []).append(f"{cell.entry} at epsilon {cell.epsilon}")
    yield from (f"  {why}: {', '.join(dict.fromkeys(names))}" for why, names in entries_by_reason.items())


def _problem(study: dict, cell: Cell, known: Sizes, most: int) -> Problem:
    options, entry = cell.options(study), study["datasets"][cell.dataset]
    budget = Budget(cell.epsilon, float(entry["delta"]), options["accounting"])
    return Problem(
        known.units, (200,), len(known.classes), budget, entry["positives"], options["sanitise"], most,
        study["noise"] == "secure", known.multi_label, entry.get("contributions") == "average",
    )  # fmt: skip


def _useful(study: dict, known: Sizes) -> Useful:
    """What the config says of usefulness; where it says nothing, only shares are told."""
    wanted = study.get("useful")
    metric = "top1" if _task(known) == CLASSES else "auc"
    if wanted and wanted["metric"] != metric:
        raise StudyError(f"useful.metric: curves of such data have {metric!r}, and not {wanted['metric']!r}")
    least, best = value_of(0.0, _task(known), len(known.classes)), 100 if metric_of(metric).percent else 1
    for key in ("at_least", "without_privacy"):
        if wanted and key in wanted and not least < wanted[key] <= best:
            raise StudyError(
                f"useful.{key}: {wanted[key]} of {metric!r}: must be above {least:g} (guessing), at most {best}"
            )
    goals = wanted or {"at_least": math.nan}
    return Useful(metric, goals["at_least"], least, float(best), goals.get("without_privacy"))


def _task(known: Sizes) -> str:
    return SEVERAL if known.multi_label else ONE if len(known.classes) == 2 else CLASSES


def _question(method: str, known: Sizes, signal: float, useful: Useful) -> Question:
    task = _task(known)
    prevalence = float(known.shares[1]) if task == ONE else float(known.shares.mean())
    best = useful.without_privacy
    return Question(method, task, len(known.classes), prevalence, known.units, signal, best)


def _expected(
    study: dict, cell: Cell, known: Sizes, forecasts: Mapping[str, Forecast], useful: Useful, what: Plan, most: int
) -> Expected:
    options, problem = cell.options(study), _problem(study, cell, known, most)
    pull, method = _pull(options, problem), options["method"]
    if method not in forecasts or not _as_measured(options, _task(known)):
        return Expected(cell, method, pull, None)
    signal = what.scale * signal_of(known.units, float(cell.epsilon), what.delta)
    if options.get("calibration", PUBLIC) != PUBLIC:
        share = share_of(problem, options["calibration"])
        share += operating_points.share_of(problem, options.get("thresholds", False)) if share else 0.0
        signal *= math.sqrt(max(0.0, 1 - share))
    return Expected(cell, method, pull, verdict(forecasts[method], _question(method, known, signal, useful), useful))


def _as_measured(options: Mapping, task: str) -> bool:
    """Whether an entry has the settings of its method's curves, but for a loss that suits the labels.

    Classes are told as well, to a point and a half, with the settings that findings have.
    """
    if "tuning" in options:
        return False
    measured = [OF_SEVERAL.get(options["method"], {}), *([] if task == SEVERAL else [{}])]
    ours, *theirs = (
        methods.parameters(options["method"], {key: value for key, value in given.items() if key != "loss"})
        for given in (hyperparameters(dict(options)), *measured)
    )
    return ours in theirs


def _pull(options: Mapping, problem: Problem) -> float | None:
    """All units pulling one way, over the noise of the release of which this is least; None where none is planned."""
    try:
        hyper = methods.parameters(options["method"], hyperparameters(dict(options)))
        events = methods.load(options["method"]).plan(hyper, problem).events
    except StudyError:
        return None
    pulls = [problem.n * event.sampling_rate / event.noise_multiplier for event in events if event.noise_multiplier]
    return min(pulls, default=None)


def _table(expected: Sequence[Expected], useful: Useful, persons: bool) -> Iterator[str]:
    known = useful.without_privacy is not None
    what = f"{useful.metric}, 90 % interval" if known else "of what can be gained over guessing survives"
    several = len({one.cell.features for one in expected}) > 1
    yield f"  {'entry':28}{_EPSILON}{'units/noise':>13}   {what}"
    shown: set[tuple] = set()
    for one in expected:
        cell, pull = one.cell, "" if one.pull is None else f"{one.pull:.3g}"
        if (same := (cell.entry, cell.epsilon, pull)) in shown:  # of other features: curves know of none
            continue
        shown.add(same)
        label = cell.entry if several else f"{cell.features}/{cell.entry}"
        line = f"  {label:28}{cell.epsilon.rjust(len(_EPSILON))}{pull:>13}   "
        if one.verdict is None:
            yield line + "no curves of this method, or of such settings"
            continue
        low, middle, high = one.verdict.value or one.verdict.share
        end = f", {one.verdict.verdict}" if not math.isnan(useful.at_least) else ""
        yield line + f"{middle:.2f} ({low:.2f} to {high:.2f}){end}"
    yield (
        f"  units/noise: how far all {'persons' if persons else 'images'} together can move the noisiest release, in "
        "standard deviations of its noise; where nothing is forecast, expect little below 10"
    )


def _decision(
    expected: Sequence[Expected], useful: Useful, forecasts: Mapping[str, Forecast], known: Sizes, what: Plan
) -> tuple[list[str], str | None]:
    """The answer in words, and in one."""
    judged = [one for one in expected if one.verdict]
    if not judged:
        return [
            "nothing is forecast: no cell of a finite epsilon has a method, in its own settings, that has curves"
        ], None
    if math.isnan(useful.at_least):
        return [
            f"write `useful: {{metric: {useful.metric}, at_least: ..., without_privacy: ...}}` into the config for a "
            "decision: what a model must have to be of use, and what it would have without privacy"
        ], None
    goal = f"{useful.metric} of {useful.at_least:g}"
    if useful.without_privacy is not None:
        if useful.without_privacy < useful.at_least:
            return [
                f"not: without privacy it would be {useful.without_privacy:g}, and {useful.at_least:g} is asked for"
            ], NOT
        goal += f" (if one without privacy has {useful.without_privacy:g})"
    answers = {one.verdict.verdict for one in judged if one.verdict}
    if WORTH in answers:
        worth = [one for one in judged if one.verdict and one.verdict.verdict == WORTH]
        first = min(worth, key=lambda one: float(one.cell.epsilon))
        model = f"{first.cell.entry} at epsilon {first.cell.epsilon}"
        return [f"worth it: {model} is to be expected to have an {goal}"], WORTH
    would = None
    if useful.without_privacy is not None:
        would = what_would_do(forecasts, _question("", known, 0.0, useful), useful, what)
    unit = "persons" if what.persons else "images"
    more = (
        f"for all of an interval to be enough it would take {would[1]:,} {unit} at epsilon {upper_bound(would[2])} "
        f"({would[0]})" if would
        else "more of such records, at an epsilon of 8, would not do it" if useful.without_privacy is not None
        else _needed(judged, useful)
    )  # fmt: skip
    if OPEN in answers:
        return [f"open: whether any of these models has an {goal} cannot be told beforehand; {more}"], OPEN
    return [f"not: no model of this study is to be expected to have an {goal}; {more}"], NOT


def _needed(judged: Sequence[Expected], useful: Useful) -> str:
    """What a model without privacy would have to have, for the best of these to be of use."""
    top = max((one.verdict.share for one in judged if one.verdict), key=lambda share: share[1])
    needed = useful.needed(top[1])
    if needed > useful.most:
        return f"where {top[1]:.2f} of the gain survives, not even a perfect model without privacy would be enough"
    return f"a model without privacy would have to have {needed:.3g}, where {top[1]:.2f} of its gain survives"
