"""Accuracy against epsilon as drawings that the page can show the numbers of, point by point."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dpstudy.evaluation.metrics import metric_of
from dpstudy.evaluation.summary import cell_name, values_by_cell
from dpstudy.report.tables import privacy_of
from dpstudy.tables.bars import asides, bar
from dpstudy.tables.chance import in_view
from dpstudy.tables.layout import cell_at
from dpstudy.tables.numbers import decimals, interval_text
from dpstudy.tables.palette import COLOURS
from dpstudy.tables.results import Results
from dpstudy.tables.series import Series, beside, chances_of, intervals_of, line_styles, marked_epsilons
from dpstudy.tables.styles import figure_style

WIDTH, HEIGHT = 560, 330
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 14, 12, 46
_STEPS = (1, 2, 2.5, 5, 10)
_TICKS = 6
_ASIDE = 6  # between lines at one epsilon
# What Matplotlib's markers and dashes of the palette look like, around (0, 0).
_SHAPES = {
    "o": "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0",
    "s": "M-3.6 -3.6h7.2v7.2h-7.2z",
    "^": "M0 -4.6L4.4 3.4H-4.4z",
    "D": "M0 -4.8L4.2 0L0 4.8L-4.2 0z",
    "v": "M0 4.6L4.4 -3.4H-4.4z",
    "P": "M-1.4 -4.4h2.8v3h3v2.8h-3v3h-2.8v-3h-3v-2.8h3z",
    "X": "M0 -1.9L2.6 -4.5L4.5 -2.6L1.9 0L4.5 2.6L2.6 4.5L0 1.9L-2.6 4.5L-4.5 2.6L-1.9 0L-4.5 -2.6L-2.6 -4.5z",
    "*": "M0 -5L1.3 -1.6L4.8 -1.5L2 .7L3 4.1L0 2.1L-3 4.1L-2 .7L-4.8 -1.5L-1.3 -1.6z",
}
_DASHES = {"-": "", "--": "7 3", "-.": "7 3 2 3", ":": "2 3"}


@dataclass(frozen=True)
class Point:
    """A point: where it is drawn, the ends of its bar (None: no bar), and what is said of it."""

    x: float
    y: float
    bar: tuple[float, float] | None
    told: str
    numbers: tuple[str, ...]


@dataclass(frozen=True)
class Line:
    """One line: its points from the least epsilon to the largest, strokes between them, and its looks."""

    label: str
    colour: int
    shape: str
    dash: str
    hollow: bool
    path: str
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Panel:
    """One data set: ticks as (position, text), where the axis breaks before ∞ and where chance lies (or None), and
    lines."""

    title: str
    x_ticks: tuple[tuple[float, str], ...]
    y_ticks: tuple[tuple[float, str], ...]
    gap: float | None
    chance: float | None
    lines: tuple[Line, ...]


def describe_chart(name: str, spec: dict, results: Results) -> dict:
    """A figure of accuracy against epsilon.

    Bars are those of `bars.bar`.

    Returns:
        {"metric", "panels" ([Panel]), "legend" ([Line], each label once)}.
    """
    metric, collect = spec.get("metric", "top1"), figure_style(spec).series
    series: Sequence[Series] = collect(name, spec, results.axes, results.summary) if collect else []
    values = values_by_cell(results.summary, metric)
    styles = line_styles(series, results.axes)
    gains = "gain_over" in spec
    intervals = {} if gains else intervals_of(series, results, metric)
    chances = {} if gains else chances_of(series, results, metric)
    panels = []
    for dataset in dict.fromkeys(line.dataset for line in series):
        own = [line for line in series if line.dataset == dataset]
        scale = _Scale(own, intervals, chances.get(dataset))
        drawing = _Drawing(scale, intervals, values, results, metric)
        aside = asides(len(own), _ASIDE, scale.narrowest)
        looks = [_looks(line, styles) for line in own]
        lines = [drawing.line(*each) for each in zip(own, looks, aside, strict=True)]
        panels.append(Panel(dataset, scale.x_ticks, scale.y_ticks, scale.gap, scale.chance, tuple(lines)))
    legend = {line.label: line for panel in panels for line in panel.lines if line.points}
    return {"metric": metric_of(metric).label, "panels": panels, "legend": list(legend.values())}


class _Scale:
    """Where epsilons and values stand in a panel."""

    def __init__(self, series: Sequence[Series], intervals: Mapping, chance: float | None):
        epsilons = sorted({point[0] for line in series for point in line.points}, key=float)
        finite = [float(epsilon) for epsilon in epsilons if epsilon != "inf"]
        first, last = (min(finite), max(finite)) if finite else (1.0, 1.0)
        end = WIDTH - _RIGHT
        right = end - 0.16 * (end - _LEFT) if "inf" in epsilons and finite else end
        span = math.log(last / first) or 1.0
        inset = 14
        self._x = {
            e: _LEFT + inset + (right - _LEFT - 2 * inset) * math.log(float(e) / first) / span
            for e in epsilons
            if e != "inf"
        }
        if "inf" in epsilons:
            self._x["inf"] = end - inset if finite else (_LEFT + end) / 2
        self.gap = right + 4 if "inf" in epsilons and finite else None
        marked = marked_epsilons(series)
        places = sorted(x for e, x in self._x.items() if e in marked)
        self.narrowest = min((second - first for first, second in itertools.pairwise(places)), default=float(WIDTH))
        self.x_ticks = tuple((x, "∞" if e == "inf" else e) for e, x in self._x.items() if e in marked)
        ends = [value for line in series for value in _extent(line, intervals)]
        low, high = min(ends), max(ends)
        seen = chance if chance is not None and in_view(chance, low, high) else None
        low, high = (low, high) if seen is None else (min(low, seen), max(high, seen))
        step = _step(high - low or 1.0)
        self._low, self._high = step * math.floor(low / step), step * math.ceil(high / step)
        if self._low == self._high:
            self._high += step
        count = round((self._high - self._low) / step)
        self.chance = None if seen is None else self.y(seen)
        ticks = [self._low + step * number for number in range(count + 1)]
        self.y_ticks = tuple((self.y(tick), f"{tick:.10g}".replace("-", "−")) for tick in ticks)

    def x(self, epsilon: str) -> float:
        return self._x[epsilon]

    def y(self, value: float) -> float:
        share = (value - self._low) / (self._high - self._low)
        return HEIGHT - _BOTTOM - share * (HEIGHT - _BOTTOM - _TOP)


def _extent(line: Series, intervals: Mapping) -> list[float]:
    found = []
    for epsilon, mean, std, _ in line.points:
        ends = intervals.get(cell_name(line.dataset, line.features, line.entry, epsilon))
        found += [mean, *(ends or (mean - (std or 0.0), mean + (std or 0.0)))]
    return found


def _step(span: float) -> float:
    """A round distance between ticks."""
    rough = span / _TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    return next(step * power for step in _STEPS if step * power >= rough * (1 - 1e-9))


def _looks(line: Series, styles: Mapping[tuple[str, str], Mapping]) -> tuple[int, str, str]:
    """(number of the colour, shape, dashes), as in the figure's PDF; published values have those of their features."""
    own = beside(line, styles) if line.published else styles[line.kind, line.entry]
    colour = COLOURS.index(own.get("color", COLOURS[-1]))
    return colour, _SHAPES[own.get("marker", "o")], _DASHES[own.get("linestyle", "-")]


@dataclass(frozen=True)
class _Drawing:
    """What the lines of a panel share."""

    scale: _Scale
    intervals: Mapping
    values: Mapping
    results: Results
    metric: str

    def line(self, line: Series, looks: tuple[int, str, str], aside: float) -> Line:
        """A line, its points moved `aside` so that bars of several do not hide each other."""
        ordered = sorted(line.points, key=lambda point: float(point[0]))
        points = [self._point(line, *point, aside) for point in ordered]
        finite = [f"{p.x:.1f} {p.y:.1f}" for p, at in zip(points, ordered, strict=True) if at[0] != "inf"]
        path = f"M{'L'.join(finite)}" if len(finite) > 1 and not line.published else ""
        return Line(line.label, *looks, line.published, path, tuple(points))

    def _point(self, line: Series, epsilon: str, mean: float, std: float | None, seeds: int, aside: float) -> Point:
        key = (line.dataset, line.features, line.entry, epsilon)
        ends = self.intervals.get(cell_name(*key))
        around = bar(mean, std, ends)
        drawn = around and (self.scale.y(mean - around[0]), self.scale.y(mean + around[1]))
        digits = decimals(std, self.metric)
        shown = f"{mean:.{digits}f}" + (f" ± {std:.{digits}f}" if std and seeds != 1 else "")
        privacy = ""
        if not line.published:
            privacy = privacy_of(cell_at(key, self.values, self.results, None, self.metric, "mean"))
        numbers = ("∞" if epsilon == "inf" else epsilon, shown, interval_text(ends, digits), privacy)
        told = [line.label, f"ε = {numbers[0]}: {shown}"]
        told += [f"95 %: {numbers[2]}"] if ends else []
        told += [privacy] if privacy and epsilon != "inf" else []
        where = self.scale.x(epsilon) + aside, self.scale.y(mean)
        return Point(*where, drawn, "\n".join(told), numbers)
