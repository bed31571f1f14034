"""The plain layout: a row per features and method entry, a column per epsilon; LaTeX (booktabs only) and CSV."""

from dpstudy.privacy.printed import lower_bound, upper_bound
from dpstudy.tables.accuracies import CSV_HEADER, MARKS, csv_row, mark_of, marks, notes
from dpstudy.tables.checks import check_cited, check_published
from dpstudy.tables.keys import CITED, row_schema
from dpstudy.tables.layout import Cell, Column, Table, lay_out
from dpstudy.tables.markup import escape, float_of, line
from dpstudy.tables.numbers import interval_text, signed
from dpstudy.tables.results import Results
from dpstudy.tables.style import AUDITED, Printed, TableStyle


def _table(name: str, spec: dict, results: Results) -> Printed:
    table = lay_out(name, spec, results)
    rows = (csv_row(cell, table) for row in table.rows for cell in row.cells)
    return Printed(CSV_HEADER, rows, latex=to_latex(table))


def to_latex(table: Table) -> str:
    """The table as a LaTeX float."""
    columns = table.columns
    wide = len(columns) > 5
    targets = (r"$\infty$" if column.epsilon == "inf" else column.epsilon for column in columns)
    certified = ("--" if column.certified is None else upper_bound(column.certified) for column in columns)
    opening = [r"\centering", r"\footnotesize" if wide else r"\small"]
    opening.append(rf"\setlength{{\tabcolsep}}{{{'3pt' if wide else '4pt'}}}")
    lines = [
        line([r"target $\varepsilon$", *targets]),
        line([r"\quad certified $\varepsilon\leq$", *certified]),
        line([r"\quad guarantee", *(column.guarantee or "--" for column in columns)]),
    ]
    if any(column.audited is not None for column in columns):
        audited = ("--" if one.audited is None else lower_bound(one.audited, places=2) for one in columns)
        lines.append(line([r"\quad attacked $\varepsilon\geq$", *audited]))
    for dataset in table.datasets:
        lines.append(r"\midrule")
        if len(table.datasets) > 1:
            lines.append(rf"\multicolumn{{{len(columns) + 1}}}{{l}}{{\textit{{{escape(dataset)}}}}} \\")
        for row in (row for row in table.rows if row.dataset == dataset):
            if row.is_cited:
                lines.append(line([escape(row.label), *(_published(cell, table, wide) for cell in row.cells)]))
                continue
            pairs = list(zip(row.cells, columns, strict=True))
            lines.append(line([escape(row.label), *(_ours(*pair, table, wide) for pair in pairs)]))
            if row.has_intervals:
                lines.append(line([r"\quad interval", *(_interval(cell, table) for cell in row.cells)]))
            if row.has_published:
                lines.append(line([r"\quad published", *(_published(cell, table, wide) for cell in row.cells)]))
    if not table.rows:
        lines.append(r"\midrule")
    sentences = [escape(sentence) for sentence in notes(table)]
    sentences += [f"{MARKS[mark]} {text}." for mark, text in marks(table).items()]
    columns_of = f"l{'c' * len(columns)}"
    return float_of(table.name, table.caption, opening, columns_of, lines, sentences, centred=False)


def _ours(cell: Cell, column: Column, table: Table, wide: bool) -> str:
    if cell.ours is None:
        return "--"
    digits = table.digits_of(cell)
    value, mark = f"{cell.ours:.{digits}f}", MARKS.get(mark_of(cell, column), "")
    if cell.seeds == 1:
        return value + mark
    spread = rf"$\pm$ {cell.std:.{digits}f}"
    return value + (_aside(spread) if wide else f" {spread}") + mark


def _interval(cell: Cell, table: Table) -> str:
    text = escape(interval_text(cell.interval, table.digits_of(cell)))
    return rf"{{\scriptsize {text}}}" if text else ""


def _aside(text: str) -> str:
    return rf"{{\scriptsize\,{text}}}"


def _published(cell: Cell, table: Table, wide: bool) -> str:
    if cell.published is None:
        return ""
    if cell.published.value is None:
        return rf"$\leq$ {cell.published.at_most:g}"
    if cell.difference is None:
        return cell.published.text
    difference = f"(${signed(cell.difference, table.digits_of(cell))}$)"
    return cell.published.text + (_aside(difference) if wide else f" {difference}")


STYLE = TableStyle(
    keys={"rows": row_schema("dataset", "features", "entry", "label", "epochs", "published"), "cited": CITED},
    check=(check_cited, check_published),
    documents=AUDITED,
    table=_table,
    shown=lay_out,
    names=True,
)
