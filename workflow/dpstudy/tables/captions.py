"""Figure captions: the style's text, and facts about the drawn cells."""

from collections.abc import Iterable, Mapping

from dpstudy.tables.facts import facts_of
from dpstudy.tables.results import Results
from dpstudy.tables.styles import figure_style


def figure_caption(spec: Mapping, cells: Iterable[str], results: Results, numbers: str) -> tuple[str, str]:
    """The caption of a figure, and its alternative text.

    Args:
        spec: its value in the config.
        cells: those that it draws something of; with their ledgers, and the manifests of their test splits.
        results: of the study.
        numbers: where its numbers stand.
    """
    style = figure_style(spec)
    caption, alt = style.caption(spec, results.axes, numbers)
    return " ".join([caption, *(facts_of(cells, results) if style.scores else ())]), alt
