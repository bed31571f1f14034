"""The interface of table and figure styles: the keys of a spec, the cells and files it reads, and how it prints.

A style stands in a file of its own (`dpstudy.tables.styles`), as the object STYLE. To import it costs nothing: what
computes or draws is imported where it is used, since a study's styles are asked before anything runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from dpstudy.tables.selecting import crossed, like

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dpstudy.tables.layout import Table
    from dpstudy.tables.results import Results
    from dpstudy.tables.sheet import Sheet


class Cell(Protocol):
    """The interface of a study's cell, as `dpstudy.config.cells.Cell`."""

    @property
    def dataset(self) -> str: ...  # noqa: D102
    @property
    def features(self) -> str: ...  # noqa: D102
    @property
    def entry(self) -> str: ...  # noqa: D102
    @property
    def epsilon(self) -> str: ...  # noqa: D102

    def options(self, config: dict) -> dict:
        """The cell's hyper-parameters."""


@dataclass(frozen=True)
class Study:
    """A loaded config, and its cells by name in the config's order."""

    config: dict
    cells: Mapping[str, Cell]


@dataclass(frozen=True)
class Printed:
    """A table ready to be written: the lines of its CSV, and its LaTeX or sheets.

    Attributes:
        sheets: of plain text; the report prints the first.
        latex: the table as LaTeX; None: that of the sheets.
    """

    header: Sequence[str]
    rows: Iterable[Sequence]
    sheets: tuple[Sheet, ...] = ()
    latex: str | None = None
    long: bool = False  # whether its sheets may run over several pages


@dataclass(frozen=True)
class Drawn:
    """A figure, and the lines of its CSV."""

    header: Sequence[str]
    rows: Iterable[Sequence]
    figure: Figure


def crossed_cells(spec: Mapping, study: Study) -> list[str]:
    """The cells of all combinations of a spec's groups, rows and columns."""
    return like(study.cells, spec, crossed(spec))


SCORED = ("ledgers", "metrics", "splits")  # the documents of cells that show scores
AUDITED = (*SCORED, "audits")


Check = Callable[[str, dict, Study], None]


def nothing(spec: Mapping, study: Study) -> list[str]:
    """An empty list of cells, for styles that print none."""
    return []


@dataclass(frozen=True, kw_only=True)
class Style:
    """The common base of table and figure styles.

    Attributes:
        keys: name -> JSON schema of each key of a spec besides those that all have (`keys.COMMON`).
        needs: the keys that must be there.
        check: (place, spec, study); raises a StudyError about what no schema can say. Or several such, in order.
        cells: (spec, study) -> names of the cells that it prints something of, perhaps some more.
        documents: (spec, study) -> what it reads besides the summary, kind -> names. Of cells: ledgers, metrics, trials
            (of searches), curves, audits, black_boxes; of data sets: splits; of "DATASET/FEATURES": features, those
            of the training split. What of it a study does not make is left out. Or the kinds alone: those of its cells.
        measures: whether its `metric` is one that the study measures on the test split.
        publics: whether its `counterparts` may be of public sets.
    """

    keys: Mapping[str, dict]
    needs: tuple[str, ...] = ()
    check: Check | tuple[Check, ...] = ()
    cells: Callable[[Mapping, Study], list[str]] = crossed_cells
    documents: Callable[[Mapping, Study], Mapping[str, Sequence[str]]] | tuple[str, ...] = ("ledgers", "metrics")
    measures: bool = True
    publics: bool = False

    def check_spec(self, place: str, spec: dict, study: Study) -> None:
        """Make all checks of a spec. Raises: a StudyError, as they do."""
        for check in (self.check,) if callable(self.check) else self.check:
            check(place, spec, study)

    def reads(self, spec: Mapping, study: Study) -> dict[str, Sequence[str]]:
        """The documents that a spec reads; by default the ledgers and metrics of its cells."""
        if callable(self.documents):
            return dict(self.documents(spec, study))
        cells = self.cells(spec, study)
        datasets = list(dict.fromkeys(study.cells[cell].dataset for cell in cells if cell in study.cells))
        return {kind: datasets if kind == "splits" else cells for kind in self.documents}


@dataclass(frozen=True, kw_only=True)
class TableStyle(Style):
    """The interface of a table layout.

    Attributes:
        table: (name, spec, results) -> the table.
        shown: the same, of accuracies for the report, which prints texts (the first sheet) where this is None.
        judges: whether it judges the claims of its `paper`, which have a section of their own in the report.
        names: whether the labels of its rows are names of methods, which figures then use too.
    """

    table: Callable[[str, dict, Results], Printed]
    shown: Callable[[str, dict, Results], Table] | None = None
    judges: bool = False
    names: bool = False


@dataclass(frozen=True, kw_only=True)
class FigureStyle(Style):
    """The interface of a kind of figure.

    Attributes:
        draw: (name, spec, results) -> the figure.
        caption: (spec, axes, numbers) -> the caption below it, and the text for those who do not see it; `axes` are the
            study's names, `numbers` says where its numbers stand.
        series: (name, spec, axes, summary) -> its lines over epsilon, which the report then draws itself; None: there
            are none, and it shows the picture.
        scores: whether what it draws are scores of cells on the test split, whose facts then stand in its caption.
        publishable: whether it may stand in a document that is passed on.
    """

    draw: Callable[[str, dict, Results], Drawn]
    caption: Callable[[Mapping, Mapping, str], tuple[str, str]]
    series: Callable[..., list] | None = None
    scores: bool = True
    publishable: bool = True
