"""The content of a table: rows of (data set, features, method entry), columns of epsilon, as in the papers.

`lay_out` gathers the numbers; styles and the report print what it returns.
"""

import itertools
import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from dpstudy.evaluation.aggregate import mean_median_std
from dpstudy.evaluation.metrics import metric_of
from dpstudy.evaluation.summary import cell_name, values_by_cell
from dpstudy.tables.facts import facts
from dpstudy.tables.intervals import joined
from dpstudy.tables.names import check_names, datasets_of, line_label, private_tests
from dpstudy.tables.numbers import decimals, usual_decimals
from dpstudy.tables.published import Published, combine, lookup
from dpstudy.tables.results import Results

_log = logging.getLogger("dpstudy")


@dataclass(frozen=True)
class Cell:
    """One number of a table and its context; fields are None where not available.

    `ceiling` is the highest accuracy that the cell's noise allows (`dpstudy.tables.ceiling`), in percent; `interval`
    has the ends of the 95 % interval of its mean (`intervals.joined`), `over_records` those over test records alone
    (mean ends over seeds), `audited` is a lower bound on epsilon, and `searched` is whether its hyper-parameters come
    from a search that is not in the ledger; `tested` says on which test records it was scored (`Results.tested`);
    `undefined` is whether the study has the cell, and its test records give the metric no value.
    """

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
    ceiling: float | None = None
    interval: tuple[float, float] | None = None
    over_records: tuple[float, float] | None = None
    audited: float | None = None
    adjacency: str | None = None
    searched: bool = False
    tested: Mapping | None = field(default=None, hash=False)
    undefined: bool = False

    @property
    def name(self) -> str:
        """The name of the cell in the study."""
        return cell_name(self.dataset, self.features, self.entry, self.epsilon)

    @property
    def number(self) -> float:
        """The number `ours`, for callers that know that the cell exists.

        Raises:
            ValueError: it is not.
        """
        if self.ours is None:
            raise ValueError(f"the study has no cell {self.name}")
        return self.ours

    @property
    def keeps_target(self) -> bool:
        """Whether the cell may be compared at its epsilon: a proved guarantee of no more than that; always at inf."""
        if self.epsilon == "inf":
            return True
        return self.guarantee == "proved" and self.certified is not None and self.certified <= float(self.epsilon)

    @property
    def competes(self) -> bool:
        """Whether the cell exists and keeps the target."""
        return self.ours is not None and self.keeps_target

    @property
    def above_ceiling(self) -> bool:
        """Whether the accuracy exceeds the cell's ceiling by more than two standard errors over seeds."""
        if self.ours is None or self.std is None or self.ceiling is None:
            return False
        return self.ours > self.ceiling + 2 * self.std / math.sqrt(self.seeds)

    @property
    def difference(self) -> float | None:
        """The difference ours - published, in the metric's unit."""
        if self.ours is None or self.published is None or self.published.value is None:
            return None
        return self.ours - self.published.value


@dataclass(frozen=True)
class Row:
    """One method entry on one kind of features; `label` and `group` (the features') are the user's texts.

    A row that has published numbers alone is of no features and no entry ("").
    """

    dataset: str
    features: str
    entry: str
    label: str
    cells: tuple[Cell, ...]
    group: str = ""
    epochs: int | None = None

    @property
    def is_cited(self) -> bool:
        """Whether the row has published numbers only."""
        return not self.entry

    @property
    def has_published(self) -> bool:
        """Whether any cell of the row has a published number."""
        return any(cell.published for cell in self.cells)

    @property
    def has_intervals(self) -> bool:
        """Whether any cell of the row has an interval."""
        return any(cell.interval for cell in self.cells)


@dataclass(frozen=True)
class Column:
    """One epsilon, with the largest certified epsilon of its cells, their guarantee, and the highest audited bound.

    The guarantee is "mixed" if they differ; None: there is no cell.
    """

    epsilon: str
    certified: float | None
    guarantee: str | None
    audited: float | None = None


@dataclass(frozen=True)
class Table:
    """The content of a table.

    `private_tests` are those of its data sets whose test split holds private records, `heads` stand above its columns
    where these are no epsilons, and `facts` are sentences about its data sets.
    """

    name: str
    caption: str
    metric: str
    statistic: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    private_tests: tuple[str, ...] = ()
    heads: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()

    @property
    def datasets(self) -> tuple[str, ...]:
        """The data sets of its rows, in order."""
        return tuple(dict.fromkeys(row.dataset for row in self.rows))

    @property
    def digits(self) -> int:
        """The number of decimals, chosen by the usual standard deviation."""
        return usual_decimals((cell.std for row in self.rows for cell in row.cells if cell.seeds > 1), self.metric)

    def digits_of(self, cell: Cell) -> int:
        """The number of decimals of one cell: the table's, or more where its standard deviation would print as zero."""
        if cell.seeds < 2 or not cell.std or float(f"{cell.std:.{self.digits}f}"):
            return self.digits
        return max(self.digits, decimals(cell.std, self.metric))

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources of the published numbers, with their statistics."""
        cells = [cell.published for row in self.rows for cell in row.cells if cell.published]
        return tuple(dict.fromkeys(f"{p.paper}, Table {p.table} ({p.statistic})" for p in cells))

    @property
    def has_bounds(self) -> bool:
        """Whether any published number is printed only as an upper bound."""
        return any(cell.published and cell.published.at_most for row in self.rows for cell in row.cells)


def lay_out(name: str, spec: dict, results: Results) -> Table:
    """The content of a table; every cell above its ceiling is logged as a warning.

    Args:
        name: its key under `tables`.
        spec: its value there: caption, dataset or datasets, groups, rows, cited, epsilons, metric, statistic,
            published, counterparts.
        results: of the study.

    Raises:
        StudyError: a data set that the study (or, of a row, the table) does not have, a metric that no cell has, a cell
            without a ledger, or a published number that cannot be told.
    """
    metric, statistic = spec.get("metric", "top1"), spec.get("statistic", "mean")
    epsilons = [str(epsilon) for epsilon in spec.get("epsilons", results.axes["epsilons"])]
    values = values_by_cell(results.summary, metric)

    def cells_of(place: tuple[str, str, str], of: Mapping, where: Mapping[str, str] | None) -> tuple[Cell, ...]:
        return tuple(cell_at((*place, epsilon), of, results, where, metric, statistic) for epsilon in epsilons)

    rows = []
    for dataset, group, row in _row_specs(name, spec, results.axes, values):
        features, entry = group["features"] if "features" in group else row["features"], row["entry"]
        where = combine(spec, dataset, *([group, row] if group else [row]))
        place, kind = (dataset, features, entry), group.get("label", group.get("features", ""))
        label = line_label(row) if not group else row.get("label", entry)
        rows.append(Row(*place, label, cells_of(place, values, where), kind, row.get("epochs")))
    for cited in spec.get("cited", []):
        place, where = (spec["dataset"], "", ""), combine(spec, spec["dataset"], cited)
        rows.append(Row(*place, cited["label"], cells_of(place, {}, where)))
    for cell in (cell for row in rows for cell in row.cells if cell.above_ceiling):
        _log.warning("%s: %.2f is above the ceiling of its noise, %.2f", cell.name, cell.ours, cell.ceiling)
    columns = tuple(_column(epsilon, [row.cells[i] for row in rows]) for i, epsilon in enumerate(epsilons))
    private = private_tests((row.dataset for row in rows), results.axes)
    printed = [(row.dataset, cell.name, cell.seeds) for row in rows for cell in row.cells if cell.ours is not None]
    sentences = facts(printed, results, private)
    return Table(name, spec.get("caption", ""), metric, statistic, columns, tuple(rows), private, facts=sentences)


def _row_specs(name: str, spec: dict, axes: Mapping, values: dict) -> Iterator[tuple[str, dict, dict]]:
    """(data set, group, row) of each row. With `groups` every row stands in every group of its data set; with neither
    groups nor rows, every (features, entry) that has a cell."""
    datasets = datasets_of(name, spec, axes)
    filled = {cell.rpartition("/")[0] for cell in values}
    for row in spec.get("rows", []):
        check_names(f"table {name}", "data set", [row.get("dataset", datasets[0])], datasets)
    for dataset in datasets:
        rows = [row for row in spec.get("rows", []) if row.get("dataset", dataset) == dataset]
        if "groups" in spec:
            groups = [group for group in spec["groups"] if group.get("dataset", dataset) == dataset]
            yield from ((dataset, group, row) for group in groups for row in rows)
        elif "rows" in spec:
            yield from ((dataset, {}, row) for row in rows)
        else:
            for features, entry in itertools.product(axes["features"], axes["entries"]):
                if f"{dataset}/{features}/{entry}" in filled:
                    yield dataset, {}, {"features": features, "entry": entry}


def cell_at(
    key: tuple[str, str, str, str],
    values: Mapping[str, Sequence[float]],
    results: Results,
    where: Mapping[str, str] | None,
    metric: str,
    statistic: str,
) -> Cell:
    """One cell of a table: the study's result, or what is published where it has none.

    Args:
        key: (data set, features, entry, epsilon).
        values: cell name -> the metric, seed by seed.
        where: the filter of its published number (`combine`), or None.

    Raises:
        StudyError: it has no ledger, or its published number cannot be told.
    """
    published = lookup({"metric": metric, **where}, key[3]) if where else None
    name = cell_name(*key)
    runs = values.get(name, [])
    if not runs:
        return Cell(*key, None, None, None, None, 0, published, undefined=name in values)
    ledger = results.ledger(name)
    mean, median, std = mean_median_std(runs)
    ours = mean if statistic == "mean" else median
    ceiling = results.ceiling(name) if metric_of(metric).ceiling else None
    over_records = results.interval(name, metric)
    more = ceiling, joined(runs, over_records, metric), over_records, results.audited(name)
    kind = ledger["adjacency"], results.searched(name), results.tested(name)
    return Cell(*key, ledger["epsilon"], ledger["guarantee"], ours, std, len(runs), published, *more, *kind)


def _column(epsilon: str, cells: list[Cell]) -> Column:
    certified = max((cell.certified for cell in cells if cell.certified is not None), default=None)
    audited = max((cell.audited for cell in cells if cell.audited is not None), default=None)
    guarantees = {cell.guarantee for cell in cells if cell.guarantee is not None}
    guarantee = guarantees.pop() if len(guarantees) == 1 else "mixed" if guarantees else None
    return Column(epsilon, certified, guarantee, audited)
