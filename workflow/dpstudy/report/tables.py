"""Tables of a study as strings for the report."""

from dpstudy.privacy.printed import lower_bound, upper_bound
from dpstudy.tables.accuracies import UNDEFINED, mark_of, marks, notes
from dpstudy.tables.layout import Cell, Column, Table
from dpstudy.tables.numbers import interval_text, signed
from dpstudy.tables.results import Results
from dpstudy.tables.sheet import Sheet
from dpstudy.tables.styles import table_style


def describe_table(name: str, spec: dict, results: Results) -> dict:
    """The content of a table for the page, by its style.

    Returns:
        Of accuracies: {"kind": "cells", "name", "caption", "head", "columns", "rows", "notes", "marks"}; of texts:
        {"kind": "text", "name", "caption", "header", "rows", "notes"}.

    Raises:
        StudyError: as the style's own function.
    """
    style = table_style(spec)
    if style.shown is None:
        return text_table(style.table(name, spec, results).sheets[0])
    return _accuracies(style.shown(name, spec, results))


def text_table(sheet: Sheet) -> dict:
    """A sheet as sortable rows: a value that stands once for several rows is repeated in each."""
    rows, above = [], ""
    for row in (row for block in sheet.blocks for row in block):
        above = row[0] or above
        rows.append((above, *row[1:]))
    named = {"kind": "text", "name": sheet.name, "caption": sheet.caption or sheet.name}
    return named | {"header": sheet.header, "rows": rows, "notes": sheet.notes}


def _accuracies(table: Table) -> dict:
    """Below heads that are no epsilons guarantees differ from row to row, so each cell bears its own."""
    columns = [
        {
            "label": f"ε = {'∞' if column.epsilon == 'inf' else column.epsilon}",
            "certified": "–" if column.certified is None else f"≤ {upper_bound(column.certified)}",
            "guarantee": column.guarantee,
            "audited": "" if column.audited is None else f"attacked ≥ {lower_bound(column.audited, places=2)}",
        }
        for column in table.columns
    ] or [{"label": head, "certified": "", "guarantee": None, "audited": ""} for head in table.heads]
    rows = []
    for row in table.rows:
        where = [row.dataset if len(table.datasets) > 1 else "", row.group]
        label = row.label if row.epochs is None else f"{row.label}, epochs: {row.epochs}"
        cells = [
            _cited(cell) if row.is_cited else _cell(cell, table, at)
            for cell, at in zip(row.cells, table.columns or [None] * len(table.heads), strict=True)
        ]
        rows.append({"label": label, "sub": ", ".join(filter(None, where)), "cells": cells})
    named = {"kind": "cells", "name": table.name, "caption": table.caption or table.name}
    named["head"] = "" if table.heads else "certified ε"
    return named | {"columns": columns, "rows": rows, "notes": notes(table), "marks": marks(table)}


def _cell(cell: Cell, table: Table, column: Column | None) -> dict:
    """A cell; without a column of epsilon nothing above it says what is certified and attacked."""
    published, digits, alone = cell.published, table.digits_of(cell), column is None
    beside = difference = ""
    seeds = "seed" if cell.seeds == 1 else "seeds"
    if published is not None:
        beside = f"≤ {published.at_most:g}" if published.value is None else published.text
    if cell.difference is not None:
        difference = signed(cell.difference, digits).replace("-", "−")
    return {
        "order": "" if cell.ours is None else repr(cell.ours),
        "value": "–" if cell.ours is None else f"{cell.ours:.{digits}f}",
        "std": f"{cell.std:.{digits}f}" if cell.seeds > 1 else "",
        "interval": interval_text(cell.interval, digits),
        "privacy": privacy_of(cell) if alone and cell.ours is not None and cell.epsilon != "inf" else "",
        "published": beside,
        "difference": difference,
        "mark": mark_of(cell, column),
        "title": f"{privacy_of(cell)}; {cell.seeds} {seeds}" if cell.ours is not None else _absent(cell),
    }


def _absent(cell: Cell) -> str:
    return UNDEFINED if cell.undefined else "no such cell"


def _cited(cell: Cell) -> dict:
    """A cell that is a published number alone."""
    keys = ("order", "value", "std", "interval", "privacy", "published", "difference", "mark", "title")
    empty = dict.fromkeys(keys, "")
    if cell.published is None:
        return empty
    source = cell.published.source or f"{cell.published.paper}, Table {cell.published.table}"
    return empty | {"order": cell.published.text, "value": cell.published.text, "title": source}


def privacy_of(cell: Cell | Column) -> str:
    """A cell's certified epsilon, and the lower bound of attacks on it, in words."""
    certified = "no certified ε" if cell.certified is None else f"certified ε ≤ {upper_bound(cell.certified)}"
    return certified if cell.audited is None else f"{certified}, attacked ε ≥ {lower_bound(cell.audited, places=2)}"
