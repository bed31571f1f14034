"""Writing a table or a figure of the study in the style that its spec names."""

import os
from pathlib import Path

from dpstudy.core.files import atomic
from dpstudy.evaluation.csv_file import write_csv
from dpstudy.tables.long_sheet import long_sheet_to_latex
from dpstudy.tables.results import Results
from dpstudy.tables.sheet import sheet_to_latex
from dpstudy.tables.styles import figure_style, table_style

File = str | os.PathLike


def build_table(name: str, spec: dict, results: Results, tex_path: File, csv_path: File) -> None:
    """Write one table as .tex (to be \\input) and as .csv.

    Args:
        name: its key under `tables`.
        spec: its value there.
        results: of the study.

    Raises:
        StudyError: an unknown style, or as the style's own function.
    """
    made = table_style(spec).table(name, spec, results)
    to_latex = long_sheet_to_latex if made.long else sheet_to_latex
    write_csv(csv_path, made.header, made.rows)
    with atomic(tex_path) as temporary:
        text = "\n".join(map(to_latex, made.sheets)) if made.latex is None else made.latex
        Path(temporary).write_text(text, encoding="utf-8")


def build_figure(
    name: str, spec: dict, results: Results, pdf_path: File, png_path: File, csv_path: File, svg_path: File
) -> None:
    """Write one figure as .pdf, .png, .csv and .svg: the same bytes for the same content.

    Arguments as of `build_table`.
    """
    from dpstudy.tables.drawing import drawing, save

    with drawing():
        made = figure_style(spec).draw(name, spec, results)
        write_csv(csv_path, made.header, made.rows)
        save(made.figure, pdf_path, png_path, svg_path)
