"""A sheet: a plain table of text, for styles that do not lay accuracies out by epsilon."""

from dataclasses import dataclass

from dpstudy.tables.markup import escape, line, minipage


@dataclass(frozen=True)
class Sheet:
    """A plain table of text.

    Attributes:
        header: the head of each column.
        columns: LaTeX column letters, such as "llrr".
        blocks: rows of text, a rule between two blocks.
        notes: sentences below the table.
    """

    name: str
    caption: str
    header: tuple[str, ...]
    columns: str
    blocks: tuple[tuple[tuple[str, ...], ...], ...]
    notes: tuple[str, ...]


def sheet_to_latex(sheet: Sheet) -> str:
    """The sheet as a LaTeX float; a table wider than the text is centred on it."""
    lines = [
        r"\begin{table}",
        r"\centering\small",
        r"\setlength{\tabcolsep}{3pt}",
        rf"\caption{{{escape(sheet.caption)}}}",
        rf"\label{{tab:{sheet.name}}}",
        rf"\makebox[\linewidth][c]{{\begin{{tabular}}{{{sheet.columns}}}",
        r"\toprule",
        line([escape(text) for text in sheet.header]),
    ]
    for block in sheet.blocks:
        lines += [r"\midrule", *(line([escape(text) for text in row]) for row in block)]
    lines += [r"\bottomrule", r"\end{tabular}}", *minipage([escape(note) for note in sheet.notes]), r"\end{table}"]
    return "\n".join(lines) + "\n"
