"""The contents of a table: rows of (data set, features, method entry), columns of epsilon, as the papers lay them out.

`lay_out` gathers the numbers; latex.py and report.py print what it returns.
"""

import os
import statistics
from collections.abc import Mapping
from dataclasses import dataclass

from dpstudy.errors import StudyError
from dpstudy.evaluation.aggregate import mean_median_std
from dpstudy.evaluation.summary import cell_name, values_by_cell
from dpstudy.files import read_json
from dpstudy.tables.numbers import decimals
from dpstudy.tables.published import Published, lookup


@dataclass(frozen=True)
class Cell:
    """One number of a table, and what it stands beside. None where there is no such thing."""

    dataset: str
    features: str
    entry: str
    epsilon: str
    certified: float | None
    guarantee: str | None
    ours: float | None
    std: float | None
    seeds: int
    published: Published | None

    @property
    def difference(self) -> float | None:
        """Ours minus published, in the metric's unit."""
        if self.ours is None or self.published is None or self.published.value is None:
            return None
        return self.ours - self.published.value


@dataclass(frozen=True)
class Row:
    """One method entry on one kind of features; `label` is the user's text."""

    dataset: str
    features: str
    entry: str
    label: str
    cells: tuple[Cell, ...]

    @property
    def has_published(self) -> bool:
        """Whether any of its cells has a printed counterpart."""
        return any(cell.published for cell in self.cells)


@dataclass(frozen=True)
class Column:
    """One epsilon: the largest certified one of its cells, and their guarantee ("mixed"; None: no cell there)."""

    epsilon: str
    certified: float | None
    guarantee: str | None


@dataclass(frozen=True)
class Table:
    """A laid-out table."""

    name: str
    caption: str
    metric: str
    statistic: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]

    @property
    def datasets(self) -> tuple[str, ...]:
        """The data sets of its rows, in order."""
        return tuple(dict.fromkeys(row.dataset for row in self.rows))

    @property
    def digits(self) -> int:
        """Digits after the point, one number for the whole table: those that its usual standard deviation deserves."""
        spread = [cell.std for row in self.rows for cell in row.cells if cell.seeds > 1]
        return decimals(statistics.median(spread) if spread else None, self.metric)

    @property
    def sources(self) -> tuple[str, ...]:
        """Where the published numbers stand, and what statistic they are."""
        cells = [cell.published for row in self.rows for cell in row.cells if cell.published]
        return tuple(dict.fromkeys(f"{p.paper}, Table {p.table} ({p.statistic})" for p in cells))

    @property
    def has_bounds(self) -> bool:
        """Whether a published cell is printed as an upper bound only."""
        return any(cell.published and cell.published.at_most for row in self.rows for cell in row.cells)


def lay_out(
    name: str,
    spec: dict,
    axes: Mapping[str, list[str]],
    summary: list[dict],
    ledgers: Mapping[str, str | os.PathLike],
) -> Table:
    """Gather the numbers of one table.

    Args:
        name: its key under `tables`.
        spec: its value there: caption, dataset or datasets, rows, epsilons, metric, statistic.
        axes: {"datasets", "features", "entries", "epsilons"}: the study's names, in config order.
        summary: rows of the summary (`read_summary`).
        ledgers: cell name -> path of its ledger.json.

    Raises:
        StudyError: a name that the study does not have, a metric that no cell has, a cell without a ledger, or a
            published number that cannot be told.
    """
    metric, statistic = spec.get("metric", "top1"), spec.get("statistic", "mean")
    if statistic not in ("mean", "median"):
        raise StudyError(f"table {name}: statistic {statistic!r} is unknown; use 'mean' or 'median'")
    epsilons = [str(epsilon) for epsilon in spec.get("epsilons", axes["epsilons"])]
    check_names(f"table {name}", "epsilon", epsilons, axes["epsilons"])
    values = values_by_cell(summary, metric)
    rows = []
    for dataset, row in _row_specs(name, spec, axes, values):
        features, entry = row["features"], row["entry"]
        cells = tuple(
            _cell((dataset, features, entry, epsilon), values, ledgers, row.get("published"), metric, statistic)
            for epsilon in epsilons
        )
        rows.append(Row(dataset, features, entry, row.get("label", f"{entry}, {features}"), cells))
    columns = tuple(_column(epsilon, [row.cells[i] for row in rows]) for i, epsilon in enumerate(epsilons))
    return Table(name, spec.get("caption", ""), metric, statistic, columns, tuple(rows))


def check_names(where: str, what: str, names: list[str], known: list[str]) -> None:
    """Refuse a name that the study does not have.

    Raises:
        StudyError: naming it, and the names that are known.
    """
    for name in names:
        if name not in known:
            raise StudyError(f"{where}: {what} {name!r} is not in the study; there are {', '.join(known)}")


def _row_specs(name: str, spec: dict, axes: Mapping, values: dict) -> list[tuple[str, dict]]:
    """(data set, row spec) of each row; without `rows`, every (features, entry) that has a cell."""
    where = f"table {name}"
    datasets = spec.get("datasets", [spec["dataset"]] if "dataset" in spec else axes["datasets"])
    check_names(where, "data set", datasets, axes["datasets"])
    if "rows" in spec:
        for row in spec["rows"]:
            check_names(where, "features", [row["features"]], axes["features"])
            check_names(where, "entry", [row["entry"]], axes["entries"])
            check_names(where, "data set", [row.get("dataset", datasets[0])], datasets)
        return [(d, row) for d in datasets for row in spec["rows"] if row.get("dataset", d) == d]
    filled = {cell.rpartition("/")[0] for cell in values}
    return [
        (dataset, {"features": features, "entry": entry})
        for dataset in datasets
        for features in axes["features"]
        for entry in axes["entries"]
        if f"{dataset}/{features}/{entry}" in filled
    ]


def _cell(key: tuple, values: dict, ledgers: Mapping, where: dict | None, metric: str, statistic: str) -> Cell:
    published = lookup({"metric": metric, **where}, key[3]) if where else None
    runs = values.get(cell_name(*key), [])
    if not runs:
        return Cell(*key, None, None, None, None, 0, published)
    if cell_name(*key) not in ledgers:
        raise StudyError(f"cell {cell_name(*key)}: it has metrics but no ledger.json; run snakemake again to remake it")
    ledger = read_json(ledgers[cell_name(*key)])
    mean, median, std = mean_median_std(runs)
    ours = mean if statistic == "mean" else median
    return Cell(*key, ledger["epsilon"], ledger["guarantee"], ours, std, len(runs), published)


def _column(epsilon: str, cells: list[Cell]) -> Column:
    certified = [cell.certified for cell in cells if cell.certified is not None]
    guarantees = {cell.guarantee for cell in cells if cell.guarantee is not None}
    return Column(
        epsilon,
        max(certified) if certified else None,
        guarantees.pop() if len(guarantees) == 1 else "mixed" if guarantees else None,
    )
