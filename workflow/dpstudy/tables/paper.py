"""The paper: all tables and figures of a study in one LaTeX document, to be compiled in the folder of the tables."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from dpstudy.core.files import atomic
from dpstudy.tables.captions import figure_caption
from dpstudy.tables.markup import escape
from dpstudy.tables.names import enumerated
from dpstudy.tables.results import Results
from dpstudy.tables.styles import figure_style

TEMPLATES = Path(__file__).with_name("templates")


def write_paper(
    study: str,
    question: str,
    results: Results,
    tables: Sequence[str],
    figures: Mapping[str, Mapping],
    cells: Mapping[str, Sequence[str]],
    path: str | os.PathLike,
) -> None:
    """Write the document: its title and question, then tables and figures in config order.

    A figure that is not for publication is left out, and the document says so in its place.

    Args:
        study: its name.
        question: what it asks, a sentence; "" for none.
        results: of the study: the ledgers of the cells that figures draw, and the manifests of their test splits.
        tables: names of the tables, TABLE.tex beside the document.
        figures: the config's `figures`, ../figures/FIGURE.pdf.
        cells: figure -> the cells that it draws something of.
        path: what is written.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(  # LaTeX is full of braces and percent signs
        loader=FileSystemLoader(TEMPLATES),
        block_start_string=r"\BLOCK{",
        block_end_string="}",
        variable_start_string=r"\VAR{",
        variable_end_string="}",
        comment_start_string=r"\COMMENT{",
        comment_end_string="}",
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["tex"] = escape
    text = environment.get_template("paper.tex.j2").render(
        study=study,
        question=question,
        cautions=_cautions(results.axes.get("private_tests", ())),
        tables=tables,
        figures=[_figure(name, spec, cells.get(name, ()), results) for name, spec in figures.items()],
    )
    with atomic(path) as temporary:
        Path(temporary).write_text(text, encoding="utf-8")


def _cautions(private_tests: Sequence[str]) -> list[str]:
    if not private_tests:
        return []
    return [
        f"The test split of {enumerated(private_tests)} holds private records: every number on it here is a statistic "
        "of them that no ledger accounts for. Keep this document where the records are kept."
    ]


def _figure(name: str, spec: Mapping, cells: Sequence[str], results: Results) -> dict:
    if not figure_style(spec).publishable:
        sentence = (
            f"The figure {name} is left out: it is drawn from private records without noise, and is not for "
            f"publication. It stands in results/figures/{name}.pdf."
        )
        return {"name": name, "drawn": False, "caption": sentence}
    caption, _ = figure_caption(spec, cells, results, "")
    caption = f"{spec['title']}: {caption}" if spec.get("title") else caption[0].upper() + caption[1:]
    return {"name": name, "drawn": True, "caption": caption}
