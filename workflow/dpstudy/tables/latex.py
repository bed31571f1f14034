"""Tables as LaTeX (booktabs is the only package needed) and as CSV."""

import os
from pathlib import Path

from dpstudy.core.files import atomic
from dpstudy.evaluation.csv_file import write_csv
from dpstudy.evaluation.metrics import METRICS
from dpstudy.privacy.printed import lower_bound, upper_bound
from dpstudy.tables.layout import Cell, Column, Table, lay_out
from dpstudy.tables.markup import escape, line, minipage
from dpstudy.tables.numbers import interval_text, over_seeds, signed
from dpstudy.tables.published import Published
from dpstudy.tables.remarks import remarks
from dpstudy.tables.results import Results

CSV_HEADER = (
    *("dataset", "features", "entry", "epsilon", "certified_epsilon", "guarantee", "statistic"),
    *("ours", "std", "seeds", "published", "published_std", "difference", "low", "high", "audited_epsilon"),
)
INTERVALS = (
    "Intervals: 95 % for the mean, from the spread over seeds (Student's t) together with that over test records: by "
    "bootstrap samples (of persons, where they are known) where the study draws them, else Wilson's."
)
_MARKS = {"claimed": r"$^{\dagger}$", "none": r"$^{\ddagger}$"}
MEANINGS = {"claimed": "guarantee claimed by its authors, not proved", "none": "no guarantee"}


def build_table(
    name: str, spec: dict, results: Results, tex_path: str | os.PathLike, csv_path: str | os.PathLike
) -> None:
    """Write one table as .tex (a table float, to be \\input) and as .csv (one line per cell). See `lay_out`."""
    table = lay_out(name, spec, results)
    write_csv(csv_path, CSV_HEADER, (csv_row(cell, table) for row in table.rows for cell in row.cells))
    with atomic(tex_path) as temporary:
        Path(temporary).write_text(to_latex(table), encoding="utf-8")


def to_latex(table: Table) -> str:
    """The table as a LaTeX float."""
    columns = table.columns
    wide = len(columns) > 5
    lines = [
        r"\begin{table}",
        r"\centering",
        r"\footnotesize" if wide else r"\small",
        rf"\setlength{{\tabcolsep}}{{{'3pt' if wide else '4pt'}}}",
        rf"\caption{{{escape(table.caption)}}}",
        rf"\label{{tab:{table.name}}}",
        rf"\begin{{tabular}}{{l{'c' * len(columns)}}}",
        r"\toprule",
        line([r"target $\varepsilon$", *(_epsilon(column.epsilon) for column in columns)]),
        line([r"\quad certified $\varepsilon\leq$", *(_certified(column) for column in columns)]),
        line([r"\quad guarantee", *(column.guarantee or "--" for column in columns)]),
    ]
    if any(column.audited is not None for column in columns):
        lines.append(line([r"\quad attacked $\varepsilon\geq$", *(_audited(column) for column in columns)]))
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
    lines += [r"\bottomrule", r"\end{tabular}", *_notes(table), r"\end{table}"]
    return "\n".join(lines) + "\n"


def _epsilon(epsilon: str) -> str:
    return r"$\infty$" if epsilon == "inf" else epsilon


def _certified(column: Column) -> str:
    return "--" if column.certified is None else upper_bound(column.certified)


def _audited(column: Column) -> str:
    return "--" if column.audited is None else lower_bound(column.audited, places=2)


def _ours(cell: Cell, column: Column, table: Table, wide: bool) -> str:
    if cell.ours is None:
        return "--"
    digits = table.digits_of(cell)
    value, mark = f"{cell.ours:.{digits}f}", _MARKS.get(mark_of(cell, column), "")
    if cell.seeds == 1:
        return value + mark
    spread = rf"$\pm$ {cell.std:.{digits}f}"
    return value + (_aside(spread) if wide else f" {spread}") + mark


def _interval(cell: Cell, table: Table) -> str:
    text = escape(interval_text(cell.interval, table.digits_of(cell)))
    return rf"{{\scriptsize {text}}}" if text else ""


def _aside(text: str) -> str:
    return rf"{{\scriptsize\,{text}}}"


def mark_of(cell: Cell, column: Column) -> str:
    """The guarantee that the cell must be marked with: its column mixes several, and it has not the strongest."""
    return cell.guarantee if column.guarantee == "mixed" and cell.guarantee in _MARKS else ""


def _published(cell: Cell, table: Table, wide: bool) -> str:
    if cell.published is None:
        return ""
    if cell.published.value is None:
        return rf"$\leq$ {cell.published.at_most:g}"
    if cell.difference is None:
        return cell.published.text
    difference = f"(${signed(cell.difference, table.digits_of(cell))}$)"
    return cell.published.text + (_aside(difference) if wide else f" {difference}")


def notes(table: Table, beside: str = "; in brackets ours minus published") -> list[str]:
    """What a reader must know to read the table, a sentence each, without markup.

    Args:
        beside: how the sentence on published numbers ends.
    """
    metric = METRICS[table.metric]
    spread = over_seeds(table.statistic, (cell.seeds for row in table.rows for cell in row.cells))
    sentences = [f"{metric[0].upper()}{metric[1:]}: {spread}."]
    if any(row.has_intervals for row in table.rows):
        sentences.append(INTERVALS)
    if any(cell.ours is None for row in table.rows if not row.is_cited for cell in row.cells):
        sentences.append("– marks a missing cell.")
    if any(column.audited is not None for column in table.columns):
        sentences.append("Attacked: the highest lower bound on ε that attacks on a column's releases gave.")
    if table.sources:
        sentences.append(f"Published: {'; '.join(table.sources)}{beside}.")
    cited = [(cell.published, cell.epsilon) for row in table.rows if row.is_cited for cell in row.cells]
    if works := dict.fromkeys(f"{p.source} at ε = {epsilon}" for p, epsilon in cited if p and p.source):
        sentences.append(f"Cited there: {'; '.join(works)}.")
    if table.has_bounds:
        sentences.append("Where only a bound is published, the paper prints the cell as at most 20 %.")
    return sentences + remarks(table)


def marks(table: Table) -> dict[str, str]:
    """The guarantees that cells are marked with, and what they mean."""
    pairs = [pair for row in table.rows for pair in zip(row.cells, table.columns, strict=True)]
    used = {mark_of(cell, column) for cell, column in pairs}
    return {mark: text for mark, text in MEANINGS.items() if mark in used}


def _notes(table: Table) -> list[str]:
    sentences = [escape(sentence) for sentence in notes(table)]
    sentences += [f"{_MARKS[mark]} {text}." for mark, text in marks(table).items()]
    return minipage(sentences)


def printed(published: Published | None) -> float | str | None:
    """A published number as a CSV field: its value, or its bound."""
    if published is None:
        return None
    if published.value is not None:
        return published.value
    return f"<={published.at_most:g}"


def csv_row(cell: Cell, table: Table) -> tuple:
    """A cell as a line under `CSV_HEADER`."""
    published = cell.published
    return (
        *(cell.dataset, cell.features, cell.entry, cell.epsilon, cell.certified, cell.guarantee, table.statistic),
        *(cell.ours, cell.std, cell.seeds),
        printed(published),
        published and published.std,
        None if cell.difference is None else round(cell.difference, 6),
        *(cell.interval or (None, None)),
        cell.audited,
    )
