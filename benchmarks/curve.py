"""A cost curve: seconds against a size, where they stop being proportional to it, a table, and a figure of it."""

import csv
import math
from pathlib import Path

from benchmarks.timing import table

STEEPER = 1.15  # a slope, on logarithmic axes, above which cost is called more than proportional


class Curve:
    """Seconds of some series at growing sizes.

    Args:
        name: of the files.
        size: what grows.
        about: the figure's title.
    """

    def __init__(self, name: str, size: str, about: str):
        self.name, self.size, self.about = name, size, about
        self._points: dict[str, list[tuple[float, float]]] = {}

    def add(self, series: str, size: float, seconds: float) -> None:
        """One measurement."""
        self._points.setdefault(series, []).append((size, seconds))

    def slopes(self, series: str) -> list[float]:
        """Of each piece between neighbouring sizes: 1 is proportional, 2 quadratic."""
        points = self._points[series]
        return [
            math.log(after[1] / before[1]) / math.log(after[0] / before[0])
            for before, after in zip(points, points[1:], strict=False)
        ]

    def finish(self, out: str | None) -> None:
        """Print the table; with `out`, write NAME.csv and NAME.png there."""
        rows = []
        for series, points in self._points.items():
            slopes = self.slopes(series)
            steep = next((int(points[at][0]) for at, slope in enumerate(slopes) if slope > STEEPER), None)
            note = "no more than proportional" if steep is None else f"steeper than proportional from {steep:,} on"
            seconds = " ".join(f"{value:.3g}" for _, value in points)
            rows.append((series, seconds, " ".join(f"{slope:.2f}" for slope in slopes), note))
        sizes = " ".join(f"{int(size):,}" for size, _ in next(iter(self._points.values())))
        table((self.about, f"seconds at {sizes}", "slopes", ""), rows)
        if out:
            self._write(Path(out))

    def _write(self, folder: Path) -> None:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot
        from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

        folder.mkdir(parents=True, exist_ok=True)
        with open(folder / f"{self.name}.csv", "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(("series", self.size, "seconds"))
            writer.writerows((series, *point) for series, points in self._points.items() for point in points)
        figure, axes = pyplot.subplots(figsize=(5, 3.5), layout="constrained")
        for series, points in self._points.items():
            axes.loglog(*zip(*points, strict=True), marker="o", markersize=4, label=series)
        axes.set(xlabel=self.size, ylabel="seconds", title=self.about)
        sizes = [size for size, _ in next(iter(self._points.values()))]
        axes.set_xticks(sizes, [f"{int(size):,}" for size in sizes])
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))  # some curves lie between two powers of ten
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_minor_locator(NullLocator())
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7)
        figure.savefig(folder / f"{self.name}.png", dpi=150)
        pyplot.close(figure)
