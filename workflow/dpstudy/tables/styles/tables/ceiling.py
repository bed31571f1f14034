"""Printed accuracies beside their theoretical ceiling (ceiling.py), with controls that show how to exceed it.

The controls are the study's cells with noise shared over classes beside the same with independent noise.
"""

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dpstudy.core.errors import StudyError
from dpstudy.evaluation.aggregate import mean_median_std
from dpstudy.evaluation.summary import cell_name, values_by_cell
from dpstudy.tables.ceiling import published_ceiling
from dpstudy.tables.claims.grid import number
from dpstudy.tables.claims.mehta2023_printed import PRIVATE_SETS, printed_scores
from dpstudy.tables.facts import facts_of
from dpstudy.tables.grouping import by_key, grouped
from dpstudy.tables.keys import PAPER, TEXT, mapping
from dpstudy.tables.names import datasets_of
from dpstudy.tables.published import RESULTS, published_rows
from dpstudy.tables.results import Results
from dpstudy.tables.selecting import like
from dpstudy.tables.sheet import Sheet
from dpstudy.tables.style import SCORED, Printed, Study, TableStyle

CSV_HEADER = (
    *("kind", "dataset", "features", "method", "epochs", "epsilon", "accuracy", "std", "seeds", "ceiling", "above"),
    *("independent", "independent_std", "independent_above"),
)
_FAR = 10.0  # points that no detail of the idealisation explains
_DELTA = {"CIFAR-10": 1e-5, "CIFAR-100": 1e-5, "ImageNet-1k": 8e-7}


@dataclass(frozen=True)
class PrintedCell:
    """A printed cell, and the ceiling of its accuracy in percent."""

    dataset: str
    pretraining: str
    method: str
    epochs: int
    epsilon: float
    accuracy: float | None
    ceiling: float

    @property
    def above(self) -> bool:
        """Whether the printed accuracy exceeds the ceiling; a cell printed as at most 20 % is never flagged."""
        return self.accuracy is not None and self.accuracy > self.ceiling


@dataclass(frozen=True)
class Control:
    """A cell with shared noise (mean and std over seeds), its twin with independent noise, and the ceiling of both."""

    dataset: str
    features: str
    entry: str
    independent_entry: str
    epsilon: str
    shared: tuple[float, float, int]
    independent: tuple[float, float, int]
    ceiling: float | None

    def exceeds(self, cell: tuple[float, float, int]) -> bool:
        """Whether a cell's accuracy exceeds the ceiling by more than two standard errors over seeds."""
        mean, std, seeds = cell
        return self.ceiling is not None and mean > self.ceiling + 2 * std / math.sqrt(seeds)


def _table(name: str, spec: dict, results: Results) -> Printed:
    printed, controls = lay_printed(spec["paper"]), lay_controls(name, spec, results)
    sheets = (_printed_sheet(name, spec, printed), *((_control_sheet(name, controls, results),) if controls else ()))
    return Printed(CSV_HEADER, (*map(_printed_row, printed), *map(_control_row, controls)), sheets, long=True)


def lay_printed(paper: str) -> list[PrintedCell]:
    """Every printed cell of Tables 2-4 at a finite epsilon, in the order of the tables."""
    grid = printed_scores(published_rows(RESULTS, paper))
    ceilings: dict[tuple, float] = {}
    cells = []
    for (place, (method, epochs), epsilon), value in grid.values.items():
        if math.isinf(epsilon):
            continue
        key = (place.dataset, method, epochs, epsilon)
        if key not in ceilings:
            records, classes = PRIVATE_SETS[place.dataset]
            delta = _DELTA[place.dataset]
            ceilings[key] = published_ceiling(method, epochs, records, classes, number(epsilon), delta)
        cells.append(PrintedCell(place.dataset, place.pretraining, method, epochs, epsilon, value.mean, ceilings[key]))
    return cells


def lay_controls(name: str, spec: dict, results: Results) -> list[Control]:
    """The cells of the spec's `controls` that the study has, at finite epsilons.

    Raises:
        StudyError: a data set that the study does not have.
    """
    axes = results.axes
    epsilons = [epsilon for epsilon in spec.get("epsilons", axes["epsilons"]) if epsilon != "inf"]
    places = list(itertools.product(datasets_of(name, spec, axes), epsilons))
    runs = values_by_cell(results.summary, "top1") if spec.get("controls") else {}
    controls = []
    for control in spec.get("controls", []):
        entries = (control["entry"], control["independent"])
        for dataset, epsilon in places:
            shared, honest = (cell_name(dataset, control["features"], entry, epsilon) for entry in entries)
            if shared in runs and honest in runs:
                place = (dataset, control["features"], *entries, epsilon)
                controls.append(Control(*place, _run(runs[shared]), _run(runs[honest]), results.ceiling(honest)))
    return controls


def _run(values: list[float]) -> tuple[float, float, int]:
    mean, _, std = mean_median_std(values)
    return mean, std, len(values)


def _printed_row(cell: PrintedCell) -> tuple:
    place = ("published", cell.dataset, cell.pretraining, cell.method, cell.epochs, number(cell.epsilon))
    return (*place, cell.accuracy, None, None, round(cell.ceiling, 6), int(cell.above), None, None, None)


def _control_row(control: Control) -> tuple:
    place = ("control", control.dataset, control.features, control.entry, None, control.epsilon)
    ceiling = None if control.ceiling is None else round(control.ceiling, 6)
    above = int(control.exceeds(control.shared)), int(control.exceeds(control.independent))
    return (*place, *control.shared, ceiling, above[0], *control.independent[:2], above[1])


def _printed_sheet(name: str, spec: dict, cells: list[PrintedCell]) -> Sheet:
    epsilons = sorted({cell.epsilon for cell in cells})
    blocks = by_key(cells, lambda cell: (cell.dataset, cell.method))
    counted = [cell for cell in cells if cell.accuracy is not None]
    above = [cell for cell in counted if cell.above]
    far = sum(cell.accuracy is not None and cell.accuracy > cell.ceiling + _FAR for cell in above)
    notes = (
        f"* above the ceiling: {len(above)} of {len(counted)} printed accuracies, {far} of them by more than "
        f"{_FAR:g} points.",
        "Ceiling: the highest accuracy that the noise of the label-bearing releases allows for balanced classes with "
        "orthogonal, known features, by the paper's sensitivities and zCDP's simple conversion (Rényi DP for DP-Adam); "
        "see dpstudy.tables.ceiling.",
        "– is printed as at most 20 % and never above.",
    )
    header = ("Data set", "Method", "T", "", *map(number, epsilons))
    laid = tuple(tuple(_block(key, of_method)) for key, of_method in blocks.items())
    return Sheet(name, spec.get("caption", ""), header, "llrl" + "r" * len(epsilons), laid, notes)


def _block(key: tuple[str, str], of_method: list[PrintedCell]) -> Iterator[tuple[str, ...]]:
    for index, cells in enumerate(grouped(of_method, lambda cell: cell.epochs)):
        by_pretraining = grouped(cells, lambda cell: cell.pretraining)
        lines = [sorted(line, key=lambda cell: cell.epsilon) for line in by_pretraining]
        head = (*(("", "") if index else key), str(cells[0].epochs))
        yield (*head, "ceiling", *(f"{cell.ceiling:.1f}" for cell in lines[0]))
        for line in lines:
            yield ("", "", "", line[0].pretraining, *map(_text, line))


def _text(cell: PrintedCell) -> str:
    return "–" if cell.accuracy is None else f"{cell.accuracy:.1f}" + "*" * cell.above


def _control_sheet(name: str, controls: list[Control], results: Results) -> Sheet:
    epsilons = sorted({control.epsilon for control in controls}, key=float)
    blocks = by_key(controls, lambda one: (one.dataset, one.features, one.entry, one.independent_entry))
    laid = []
    for (dataset, features, entry, independent), block in blocks.items():
        by_epsilon = {control.epsilon: control for control in block}
        line = [by_epsilon.get(epsilon) for epsilon in epsilons]
        shared = (dataset, features, entry, *(_mark(c, c.shared) if c else "–" for c in line))
        honest = ("", "", independent, *(_mark(c, c.independent) if c else "–" for c in line))
        ceilings = (f"{c.ceiling:.1f}" if c and c.ceiling is not None else "–" for c in line)
        laid.append((shared, honest, ("", "", "ceiling", *ceilings)))
    pairs = ((one, entry) for one in controls for entry in (one.entry, one.independent_entry))
    notes = (
        "Means over seeds; * above the ceiling by more than two standard errors.",
        "The first line of each block adds one noise to every class, which cancels in the largest score and has no "
        "guarantee; the second is the same method, with the same noise level, drawn for each class.",
        *facts_of((cell_name(one.dataset, one.features, entry, one.epsilon) for one, entry in pairs), results),
    )
    caption = "Noise shared over classes, the same noise drawn independently, and the ceiling."
    header = ("Data set", "Features", "Entry", *epsilons)
    return Sheet(f"{name}-controls", caption, header, "lll" + "r" * len(epsilons), tuple(laid), notes)


def _mark(control: Control, cell: tuple[float, float, int]) -> str:
    return f"{cell[0]:.1f}" + "*" * control.exceeds(cell)


def _check(place: str, spec: dict, study: Study) -> None:
    if spec["paper"] != "mehta2023":
        raise StudyError(f"{place}.paper: the style 'ceiling' knows mehta2023 only, not {spec['paper']}")


def _cells(spec: Mapping, study: Study) -> list[str]:
    pairs = [(one["features"], [one["entry"], one["independent"]]) for one in spec.get("controls", [])]
    return like(study.cells, spec, [{"features": [features], "entry": entries} for features, entries in pairs])


_CONTROL = mapping(("features", "entry", "independent"), features=TEXT, entry=TEXT, independent=TEXT)
STYLE = TableStyle(
    keys={
        "paper": PAPER,
        "controls": {
            "description": "Entries with noise shared over classes, beside the same with independent noise.",
            "type": "array",
            "items": _CONTROL,
        },
    },
    needs=("paper",),
    check=_check,
    cells=_cells,
    documents=SCORED,
    table=_table,
)
