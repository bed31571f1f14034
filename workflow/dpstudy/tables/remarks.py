"""Remarks on a table's or figure's cells: unpaid searches, other adjacencies or test records, private scores."""

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Any

from dpstudy.evaluation.metrics import metric_of
from dpstudy.tables.layout import Cell, Row, Table
from dpstudy.tables.names import enumerated, private_tests
from dpstudy.tables.unlike import unlike_rows

_UNPAID = "searched on validation records of the private data, which no ledger accounts for"
_ADJACENCIES = {
    "zero-out": "ε is about leaving one place empty (zero-out), not about adding or removing",
    "replace-one": "ε is about replacing (replace-one), not about adding or removing",
}


def remarks(table: Table) -> list[str]:
    """The remarks on a table, as sentences without markup that name rows where they concern some only."""
    rows = [row for row in table.rows if _any(row, lambda cell: True)]
    sentences = [_said(rows, lambda cell: cell.searched, f"Hyper-parameters were {_UNPAID}")]
    for adjacency, text in _ADJACENCIES.items():
        sentences.append(_said(rows, partial(_is, adjacency), text))
    sentences += unlike_rows(_scored(table), table.private_tests)
    return [sentence for sentence in (*sentences, private_scores(table.private_tests)) if sentence]


def _scored(table: Table) -> Iterator[tuple[str, str, Mapping | None]]:
    """As `unlike_rows` takes them: what stands beside a row's label tells it from others of its label."""
    for row in table.rows:
        for cell, head in zip(row.cells, table.heads or [row.group] * len(row.cells), strict=True):
            yield row.dataset, ", ".join(filter(None, (row.label, head))), cell.tested


def private_scores(datasets: Collection[str]) -> str:
    """A sentence on scores that are statistics of private test records; "" where there are none."""
    names = ", ".join(datasets)
    return f"Scores on {names} are statistics of private test records, which no ledger accounts for." if names else ""


def _is(adjacency: str, cell: Cell) -> bool:
    return cell.adjacency == adjacency


def _any(row: Row, true_of: Callable[[Cell], bool]) -> bool:
    """Whether it is true of a cell of the row whose ε means something."""
    return any(cell.certified is not None and true_of(cell) for cell in row.cells)


def _said(rows: list[Row], true_of: Callable[[Cell], bool], sentence: str) -> str:
    about = [row for row in rows if _any(row, true_of)]
    if not about:
        return ""
    labels = "; ".join(dict.fromkeys(row.label for row in about))
    return f"{sentence}." if len(about) == len(rows) else f"{sentence}: {labels}."


def figure_remarks(spec: Mapping, axes: Mapping) -> str:
    """The remarks of `spec_remarks` as one text, each sentence preceded by a space; or ""."""
    return "".join(f" {sentence}" for sentence in spec_remarks(spec, axes))


def spec_remarks(spec: Mapping, axes: Mapping) -> list[str]:
    """The remarks on a figure, or on a table that is not laid out by epsilon.

    Args:
        spec: its value in the config.
        axes: the study's names; `searched` (none where absent): the entries whose search nobody pays for;
            `private_tests`: the data sets whose test split holds private records.
    """
    drawn = set(_named(spec, ("entry", "entries"))) or set(axes["entries"])
    searched = [entry for entry in axes.get("searched", ()) if entry in drawn]
    datasets = list(_named(spec, ("dataset", "datasets"))) or axes["datasets"]
    sentences = [
        f"The hyper-parameters of {', '.join(searched)} were {_UNPAID}." if searched else "",
        private_scores(private_tests(datasets, axes)),
    ]
    return [sentence for sentence in sentences if sentence]


def cited_remark(spec: Mapping) -> str:
    """A sentence on the papers whose numbers are cited, preceded by a space; or ""."""
    papers = sorted({(spec.get("published", {}) | row["published"]).get("paper", "") for row in spec.get("cited", [])})
    return f" Grey: what {enumerated(papers)} prints, of others too, each as it is printed there." if papers else ""


def measured(spec: Mapping, axes: Mapping, numbers: str, shown: str, detail: str) -> tuple[str, str]:
    """The caption and the alternative text of a figure of a metric."""
    metric = metric_of(spec.get("metric", "top1")).label
    more = cited_remark(spec) + (figure_remarks(spec, axes) if axes else "")
    return f"{metric} {shown}; {detail}.{more}", f"{metric} {shown}; {numbers}."


def _named(value: Any, keys: Collection[str], key: str = "") -> Iterator[str]:
    """The names under some keys anywhere in a figure's value."""
    if isinstance(value, Mapping):
        for name, part in value.items():
            yield from _named(part, keys, name)
    elif isinstance(value, list):
        for part in value:
            yield from _named(part, keys, key)
    elif key in keys:
        yield value
