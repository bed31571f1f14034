"""Sheets that span several pages: LaTeX with booktabs and longtable."""

from collections.abc import Sequence

from dpstudy.tables.markup import escape, line, minipage
from dpstudy.tables.sheet import Sheet


def long_sheet_to_latex(sheet: Sheet) -> str:
    """The sheet as a LaTeX longtable in its own group; fixed-width columns ("p{...}") are set ragged."""
    ragged = "p{" in sheet.columns

    def text(cells: Sequence[str]) -> str:
        return line([_ragged(escape(cell)) if ragged and cell else escape(cell) for cell in cells])

    head = [r"\toprule", text(sheet.header), r"\midrule"]
    lines = [
        r"\begingroup",
        r"\scriptsize",
        rf"\setlength{{\tabcolsep}}{{{3 if ragged else 2}pt}}",
        r"\setlength{\parindent}{0pt}",
        r"\setlength{\LTcapwidth}{\linewidth}",
        rf"\begin{{longtable}}{{{sheet.columns}}}",
        rf"\caption{{{escape(sheet.caption)}}}\label{{tab:{sheet.name}}}\\",
        *head,
        r"\endfirsthead",
        *head,
        r"\endhead",
        r"\bottomrule",
        r"\endlastfoot",
    ]
    for number, block in enumerate(sheet.blocks):
        lines += [r"\midrule"] * (number > 0)
        lines += map(text, block)
    lines += [r"\end{longtable}", *minipage([escape(note) for note in sheet.notes]), r"\par\endgroup"]
    return "\n".join(lines) + "\n"


def _ragged(text: str) -> str:
    """Escaped text for a narrow column: formulas and paths may break after "*" and "/"."""
    for character in "*/":
        text = text.replace(character, rf"{character}\allowbreak{{}}")
    return rf"{{\raggedright {text}\par}}"
