"""Backbones side by side (anon_smoothing, Table 1): a row per method entry and epsilon, a column per feature set."""

from dpstudy.core.errors import StudyError
from dpstudy.evaluation.summary import values_by_cell
from dpstudy.privacy.printed import upper_bound
from dpstudy.tables.accuracies import CSV_HEADER, csv_row, mark_of, marks, notes
from dpstudy.tables.checks import check_crossed, check_published
from dpstudy.tables.facts import facts_of
from dpstudy.tables.keys import PUBLISHED, TEXT, mapping, row_schema, several
from dpstudy.tables.layout import Cell, Row, Table, cell_at
from dpstudy.tables.names import private_tests
from dpstudy.tables.numbers import interval_text
from dpstudy.tables.published import combine
from dpstudy.tables.results import Results
from dpstudy.tables.sheet import Sheet
from dpstudy.tables.style import AUDITED, Printed, Study, TableStyle

_MARKS = {"claimed": "†", "none": "‡"}


def _table(name: str, spec: dict, results: Results) -> Printed:
    table = lay_side_by_side(name, spec, results)
    rows = (csv_row(cell, table) for row in table.rows for cell in row.cells)
    return Printed(CSV_HEADER, rows, (_sheet(table),))


def lay_side_by_side(name: str, spec: dict, results: Results) -> Table:
    """The content of the table: a row for each row of the spec, with one cell per column of the spec.

    Args:
        name: its key under `tables`.
        spec: its value there: dataset, columns ({features, label, published}), rows ({entry, epsilon, label,
            published}), metric, statistic. A cell has a published number where its row and its column both name
            filters.
        results: of the study.

    Raises:
        StudyError: no cell at all, or a published number that cannot be told.
    """
    dataset, metric, statistic = spec["dataset"], spec.get("metric", "top1"), spec.get("statistic", "mean")
    values, rows = values_by_cell(results.summary, metric), []
    for row in spec["rows"]:
        filters = [(column["features"], combine({}, dataset, row, column)) for column in spec["columns"]]
        places = [((dataset, features, row["entry"], row["epsilon"]), where) for features, where in filters]
        cells = tuple(cell_at(place, values, results, where, metric, statistic) for place, where in places)
        label = row.get("label", f"{row['entry']}, ε = {'∞' if row['epsilon'] == 'inf' else row['epsilon']}")
        rows.append(Row(dataset, "", row["entry"], label, cells))
    if all(cell.ours is None and not cell.undefined for row in rows for cell in row.cells):
        raise StudyError(f"table {name}: the study has none of its cells, or {metric!r} in none of them")
    private = private_tests([dataset], results.axes)
    sentences = facts_of((cell.name for row in rows for cell in row.cells), results)
    heads = tuple(column.get("label", column["features"]) for column in spec["columns"])
    return Table(name, spec.get("caption", ""), metric, statistic, (), tuple(rows), private, heads, sentences)


def _sheet(table: Table) -> Sheet:
    heads = table.heads
    block: list[tuple[str, ...]] = []
    for row in table.rows:
        block.append((row.label, *(_text(cell, table.digits_of(cell)) for cell in row.cells)))
        if row.has_intervals:
            block.append(("interval", *(interval_text(cell.interval, table.digits_of(cell)) for cell in row.cells)))
    told = [f"{_MARKS[guarantee]} {text}." for guarantee, text in marks(table).items()]
    sentences = (*notes(table, ", in brackets"), *told, *_certified(table, heads))
    return Sheet(table.name, table.caption, ("Method", *heads), "l" + "c" * len(heads), (tuple(block),), sentences)


def _text(cell: Cell, digits: int) -> str:
    text = "–"
    if cell.ours is not None:
        spread = f" ± {cell.std:.{digits}f}" if cell.seeds > 1 else ""
        text = f"{cell.ours:.{digits}f}{spread}{_MARKS.get(mark_of(cell, None), '')}"
    if cell.published is None:
        return text
    bounded = cell.published.value is None
    return f"{text} ({f'≤ {cell.published.at_most:g}' if bounded else cell.published.text})"


def _certified(table: Table, heads: tuple[str, ...]) -> list[str]:
    """How the epsilons of proved cells compare with those of their rows: they are certified, not aimed at."""
    pairs = [(row, *pair) for row in table.rows for pair in zip(heads, row.cells, strict=True)]
    proved = [(row, head, cell) for row, head, cell in pairs if cell.guarantee == "proved" and cell.epsilon != "inf"]
    if not proved:
        return []
    over = [(f"{row.label}, {head}", cell.certified) for row, head, cell in proved if not cell.keeps_target]
    beyond = [f"{place} (ε ≤ {upper_bound(certified)})" for place, certified in over if certified is not None]
    kept = "At a finite ε, cells without a mark are proved, and certified at no more than their row's ε"
    return [f"{kept}{'; but for ' + '; '.join(beyond) if beyond else ''}."]


def _check(place: str, spec: dict, study: Study) -> None:
    for key in ("datasets", "epsilons"):
        if key in spec:
            raise StudyError(f"{place}.{key}: the style 'side_by_side' has one 'dataset', and an 'epsilon' a row")


STYLE = TableStyle(
    keys={
        "rows": row_schema("entry", "epsilon", "label", "published", required=("entry", "epsilon")),
        "columns": several(
            mapping(("features",), features=TEXT, label=TEXT, published=PUBLISHED),
            "One for each feature set. A cell has a published value where its row and its column both name filters.",
        ),
    },
    needs=("dataset", "columns", "rows"),
    check=(_check, check_crossed, check_published),
    documents=AUDITED,
    table=_table,
    shown=lay_side_by_side,
)
