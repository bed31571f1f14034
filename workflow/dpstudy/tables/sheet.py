"""A sheet: a plain table of text, for styles that do not lay accuracies out by epsilon."""

from dataclasses import dataclass

from dpstudy.tables.markup import escape, float_of, line


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
    rows = [line([escape(text) for text in sheet.header])]
    for block in sheet.blocks:
        rows += [r"\midrule", *(line([escape(text) for text in row]) for row in block)]
    opening, notes = (r"\centering\small", r"\setlength{\tabcolsep}{3pt}"), [escape(note) for note in sheet.notes]
    return float_of(sheet.name, sheet.caption, opening, sheet.columns, rows, notes, centred=True)
