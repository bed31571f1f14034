"""The layout of mehta2023's Table 1: the best entry at each epsilon, beside previous work and the paper's best."""

from dataclasses import dataclass

from dpstudy.evaluation.metrics import metric_of
from dpstudy.tables.accuracies import fields_beside, printed
from dpstudy.tables.checks import check_published, check_rows
from dpstudy.tables.grouping import grouped
from dpstudy.tables.keys import GROUPED
from dpstudy.tables.layout import Cell, Row, Table, lay_out
from dpstudy.tables.names import datasets_of
from dpstudy.tables.numbers import over_seeds, signed
from dpstudy.tables.published import Published, combine, find_all
from dpstudy.tables.remarks import remarks
from dpstudy.tables.results import Results
from dpstudy.tables.sheet import Sheet
from dpstudy.tables.style import AUDITED, Printed, Study, TableStyle

CSV_HEADER = (
    *("dataset", "epsilon", "previous", "previous_source"),
    *("ours", "std", "seeds", "certified_epsilon", "guarantee", "statistic", "entry", "method", "epochs", "features"),
    *("published", "published_method", "published_epochs", "published_pretraining", "difference"),
)


@dataclass(frozen=True)
class Line:
    """One data set at one epsilon: our best cell with its row, the previous state of the art, and the paper's best.

    Each is None where there is no such thing.
    """

    dataset: str
    epsilon: str
    row: Row | None
    cell: Cell | None
    previous: Published | None
    published: Published | None

    @property
    def difference(self) -> float | None:
        """The difference ours - published."""
        if self.cell is None or self.published is None or self.published.value is None:
            return None
        return self.cell.number - self.published.value


def _table(name: str, spec: dict, results: Results) -> Printed:
    table, lines = lay_best(name, spec, results)
    return Printed(CSV_HEADER, (_csv_row(line, table) for line in lines), (_sheet(table, lines),))


def lay_best(name: str, spec: dict, results: Results) -> tuple[Table, list[Line]]:
    """The table of competing cells (see `lay_out`), and the best of them per data set and epsilon; the first of equals.

    Only cells that keep the epsilon of their column compete. The table's `published` and the data set's counterpart
    name the paper's rows; those that cite another source are the previous state of the art.
    """
    table = lay_out(name, _without_published(spec), results)
    merit = metric_of(table.metric).merit
    lines = []
    for dataset in datasets_of(name, spec, results.axes):
        where = combine(spec, dataset)
        for column, epsilon in enumerate(column.epsilon for column in table.columns):
            rows = [(row, row.cells[column]) for row in table.rows if row.dataset == dataset]
            able = [(row, cell) for row, cell in rows if cell.competes]
            row, cell = max(able, key=lambda pair: merit(pair[1].number), default=(None, None))
            printed_there = find_all({"metric": table.metric, **where}, epsilon) if where else []
            previous = next((number for number in printed_there if number.source), None)
            own = [number for number in printed_there if not number.source and number.value is not None]
            published = max(own, key=lambda number: merit(number.value or 0.0), default=None)
            lines.append(Line(dataset, epsilon, row, cell, previous, published))
    return table, lines


def _without_published(spec: dict) -> dict:
    """The spec without the filters that name a published number for each row."""
    bare = {key: value for key, value in spec.items() if key not in ("published", "counterparts")}
    parts = {kind: spec[kind] for kind in ("groups", "rows") if kind in spec}
    return bare | {kind: [{k: row[k] for k in row if k != "published"} for row in of] for kind, of in parts.items()}


def _sheet(table: Table, lines: list[Line]) -> Sheet:
    beside = any(line.previous or line.published for line in lines)
    header = ("Data set", "ε", *(("Previous",) if beside else ()), "Ours", "Method", "Epochs", "Features")
    header += ("Published", "by", "from") if beside else ()
    columns = "lr" + "r" * beside + "rlrl" + "rll" * beside
    blocks = grouped(lines, lambda line: line.dataset)
    texts = tuple(tuple(_texts(line, table, beside, line is block[0]) for line in block) for block in blocks)
    return Sheet(table.name, table.caption, header, columns, texts, tuple(_notes(table, lines)))


def _texts(found: Line, table: Table, beside: bool, first: bool) -> tuple[str, ...]:
    row, cell, previous, published = found.row, found.cell, found.previous, found.published
    ours, difference = ("–", "", "", ""), ""
    if row is not None and cell is not None:
        digits = table.digits_of(cell)
        value = f"{cell.ours:.{digits}f}" + (f" ± {cell.std:.{digits}f}" if cell.seeds > 1 else "")
        ours = (value, row.label, "" if row.epochs is None else str(row.epochs), row.group or row.features)
        if found.difference is not None:
            difference = f" ({signed(found.difference, digits)})".replace("-", "−")
    texts = [found.dataset if first else "", "∞" if found.epsilon == "inf" else found.epsilon]
    texts += [previous.text if previous else ""] if beside else []
    texts += ours
    if beside:
        by = " ".join(part for part in (published.method, published.epochs) if part) if published else ""
        texts += (published.text + difference, by, published.pretraining) if published else ("", "", "")
    return tuple(texts)


def _notes(table: Table, lines: list[Line]) -> list[str]:
    spread = over_seeds(table.statistic, (line.cell.seeds for line in lines if line.cell))
    sentences = [
        f"Ours: the best {spread} among {len(table.rows)} rows, of the cells whose ε is proved; the choice was made on "
        "the test split, as in the paper, and is optimistic."
    ]
    published = [line.published for line in lines if line.published]
    if sources := dict.fromkeys(f"{one.paper}, Table {one.table}" for one in published):
        sentences.append(f"Published: {'; '.join(sources)}, method and epochs, in brackets ours minus published.")
    if cited := dict.fromkeys(line.previous.source for line in lines if line.previous):
        sentences.append(f"Previous: state of the art before that, {'; '.join(cited)}.")
    return [*sentences, *table.facts, *remarks(table)]


def _csv_row(found: Line, table: Table) -> tuple:
    row, cell, published = found.row, found.cell, found.published
    ours: tuple = (None,) * 10
    if row is not None and cell is not None:
        ours = (cell.ours, cell.std, cell.seeds, cell.certified, cell.guarantee, table.statistic)
        ours += (row.entry, row.label, row.epochs, row.features)
    by = (published.method, published.epochs, published.pretraining) if published else (None,) * 3
    value, _, difference = fields_beside(published, found.difference)
    previous = printed(found.previous), found.previous and found.previous.source
    return (found.dataset, found.epsilon, *previous, *ours, value, *by, difference)


def _check(place: str, spec: dict, study: Study) -> None:
    check_published(place, spec, study, lambda spec, dataset: iter([()]), find_all)


STYLE = TableStyle(
    keys=GROUPED,
    check=(check_rows, _check),
    documents=AUDITED,
    table=_table,
    names=True,
)
