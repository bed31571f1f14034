"""The layout of mehta2023's Tables 2-4: groups of rows by pre-training, rows by method and epochs, epsilon columns.

The non-private column comes first; published values stand below ours.
"""

from collections.abc import Callable

from dpstudy.evaluation.metrics import metric_of
from dpstudy.tables.accuracies import UNDEFINED, fields_beside
from dpstudy.tables.checks import check_published, check_rows
from dpstudy.tables.grouping import by_key
from dpstudy.tables.keys import GROUPED
from dpstudy.tables.layout import Cell, Row, Table, lay_out
from dpstudy.tables.leading import leader
from dpstudy.tables.markup import escape, float_of, line
from dpstudy.tables.numbers import over_seeds, signed
from dpstudy.tables.remarks import remarks
from dpstudy.tables.results import Results
from dpstudy.tables.style import AUDITED, Printed, TableStyle

CSV_HEADER = (
    *("dataset", "group", "features", "method", "epochs", "entry", "epsilon", "certified_epsilon", "guarantee"),
    *("statistic", "ours", "std", "seeds", "best", "ceiling", "above_ceiling"),
    *("published", "published_std", "published_best", "difference", "low", "high"),
)
_ABOVE, _NO_CLAIM = r"$^{\dagger}$", r"$^{\ddagger}$"
_HEADER_COLUMNS = 2  # method, epochs


def _table(name: str, spec: dict, results: Results) -> Printed:
    epsilons = sorted(spec.get("epsilons", results.axes["epsilons"]), key=lambda epsilon: epsilon != "inf")
    table = lay_out(name, spec | {"epsilons": epsilons}, results)
    best = best_cells(table)
    rows = (_csv_row(row, cell, table, *best) for row in table.rows for cell in row.cells)
    return Printed(CSV_HEADER, rows, latex=to_latex(table))


def best_cells(table: Table) -> tuple[set[Cell], set[Cell]]:
    """The cells with our best, and with the best published value, per data set, group and column.

    Ours: the one that is ahead of all others (`leader`) among the cells that keep the epsilon of their column.
    """
    ours, published = set(), set()
    merit = metric_of(table.metric).merit
    for rows in blocks(table).values():
        for cells in zip(*(row.cells for row in rows), strict=True):
            best = leader((cell for cell in cells if cell.competes), table.statistic, merit)
            ours |= {best} if best else set()
            printed_there = {cell: cell.published.value for cell in cells if cell.published}
            known = [value for value in printed_there.values() if value is not None]
            most = max(known, key=merit, default=None)
            published |= {cell for cell, value in printed_there.items() if value is not None and value == most}
    return ours, published


def blocks(table: Table) -> dict[tuple[str, str], list[Row]]:
    """(data set, group) -> its rows, in order."""
    return by_key(table.rows, lambda row: (row.dataset, row.group))


def to_latex(table: Table) -> str:
    """The table as a LaTeX float; one wider than the text is centred on it."""
    best, best_published = best_cells(table)
    columns, width = table.columns, _HEADER_COLUMNS + len(table.columns)
    private = [column.epsilon for column in columns if column.epsilon != "inf"]
    over = [""] * (width - len(private)) + [rf"\multicolumn{{{len(private)}}}{{c}}{{$\varepsilon$}}"] * bool(private)
    lines = [line(over), line(["Method", "Epochs", *["NP"] * (len(columns) - len(private)), *private])]
    for (dataset, group), rows in blocks(table).items():
        title = group if len(table.datasets) == 1 else f"{dataset}, {group}"
        lines += [r"\midrule", rf"\multicolumn{{{width}}}{{l}}{{\textit{{{escape(title)}}}}} \\"]
        for row in rows:
            epochs = "" if row.epochs is None else str(row.epochs)
            lines.append(line([escape(row.label), epochs, *(_ours(cell, table, best) for cell in row.cells)]))
            if row.has_published:
                published = (_published(cell, table, best_published) for cell in row.cells)
                lines.append(line([r"\quad published", "", *published]))
    opening = (r"\centering\footnotesize", r"\setlength{\tabcolsep}{2pt}")
    return float_of(table.name, table.caption, opening, f"lr{'c' * len(columns)}", lines, notes(table), centred=True)


def _ours(cell: Cell, table: Table, best: set[Cell]) -> str:
    if cell.ours is None:
        return "--"
    digits = table.digits_of(cell)
    value = f"{cell.ours:.{digits}f}"
    value = rf"\textbf{{{value}}}" if cell in best else value
    spread = _aside(rf"$\pm${cell.std:.{digits}f}") if cell.seeds > 1 else ""
    return value + spread + _ABOVE * cell.above_ceiling + _NO_CLAIM * (not cell.keeps_target)


def _published(cell: Cell, table: Table, best: set[Cell]) -> str:
    if cell.published is None:
        return ""
    if cell.published.value is None:
        return "-"
    value = rf"\underline{{{cell.published.text}}}" if cell in best else cell.published.text
    difference = "" if cell.difference is None else _aside(f"(${signed(cell.difference, table.digits_of(cell))}$)")
    return rf"{{\scriptsize {value}}}{difference}"


def _aside(text: str) -> str:
    return rf"{{\tiny\,{text}}}"


def notes(table: Table) -> list[str]:
    """The notes below the table, as LaTeX sentences."""
    cells = [cell for row in table.rows for cell in row.cells]
    spread = over_seeds(table.statistic, (cell.seeds for cell in cells), r"$\pm$")
    metric = escape(metric_of(table.metric).label)
    sentences = [rf"{metric[0].upper()}{metric[1:]}: {spread}. NP: non-private ($\varepsilon = \infty$)."]

    def add(condition: Callable[[Cell], bool], sentence: str) -> None:
        if any(condition(cell) for cell in cells):
            sentences.append(sentence)

    sentences.append(_bold(best_cells(table)[0], any(cell.interval for cell in cells)))
    proved = r"Each $\varepsilon$ is certified and proved, unless marked."
    add(lambda cell: cell.keeps_target and cell.epsilon != "inf", proved)
    add(lambda cell: cell.ours is None and not cell.undefined, "--: no such cell.")
    add(lambda cell: cell.undefined, f"--: {UNDEFINED}.")
    if table.sources:
        sources = escape("; ".join(table.sources))
        extreme = "lowest" if metric_of(table.metric).lower_is_better else "highest"
        sentences.append(f"Published: {sources}; in brackets ours minus published; underlined: {extreme} published.")
    if table.has_bounds:
        sentences.append(r"A published - is at most 20\,\%, without a number.")
    above = f"{_ABOVE} Above the ceiling that the released signal-to-noise sets, by more than two standard errors."
    add(lambda cell: cell.above_ceiling, above)
    unproved = rf"{_NO_CLAIM} No proved guarantee at this $\varepsilon$; not compared."
    add(lambda cell: cell.ours is not None and not cell.keeps_target, unproved)
    return sentences + [escape(sentence) for sentence in (*table.facts, *remarks(table))]


def _bold(best: set[Cell], with_intervals: bool) -> str:
    over = "over seeds and test records" if with_intervals else "over seeds"
    ahead = f"ahead of all others in its column and group by more than two standard errors of the difference {over}"
    if not best:
        return f"Nothing is bold: nothing is {ahead}."
    return f"Bold: {ahead}; where nothing is bold, nothing is that far ahead."


def _csv_row(row: Row, cell: Cell, table: Table, best: set[Cell], best_published: set[Cell]) -> tuple:
    has = cell.ours is not None
    place = (row.dataset, row.group, row.features, row.label, row.epochs, row.entry, cell.epsilon)
    ours = (cell.certified, cell.guarantee, table.statistic, cell.ours, cell.std, cell.seeds)
    above = int(cell.above_ceiling) if has and cell.ceiling is not None else None
    published, std, difference = fields_beside(cell.published, cell.difference)
    best_there = int(cell in best_published) if cell.published else None
    return (
        *(*place, *ours, int(cell in best) if has else None, cell.ceiling, above),
        *(published, std, best_there, difference, *(cell.interval or (None, None))),
    )


STYLE = TableStyle(
    keys=GROUPED,
    needs=("groups", "rows"),
    check=(check_rows, check_published),
    documents=AUDITED,
    table=_table,
    shown=lay_out,
    names=True,
)
