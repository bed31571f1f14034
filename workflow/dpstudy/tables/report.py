"""The report: one HTML file that opens offline, with the tables, the figures and each cell's ledger in words."""

import base64
import os
from collections.abc import Mapping
from pathlib import Path

from dpstudy.errors import StudyError
from dpstudy.evaluation.summary import cell_name
from dpstudy.files import atomic, read_json
from dpstudy.privacy.audit import rounded_down
from dpstudy.tables.build import SHEETS
from dpstudy.tables.captions import figure_captions, joined
from dpstudy.tables.latex import mark_of, marks, notes
from dpstudy.tables.layout import Cell, Column, Table, lay_out
from dpstudy.tables.numbers import interval_text, signed, upper_bound
from dpstudy.tables.results import Results
from dpstudy.tables.sheet import Sheet
from dpstudy.tables.words import (
    GUARANTEES,
    audit_in_words,
    certificate_in_words,
    dedup_in_words,
    ledger_in_words,
    spent_in_words,
    test_in_words,
    total_in_words,
)

TEMPLATES = Path(__file__).parents[2] / "report"
_BY_EPSILON = ("plain", "grouped")  # styles of tables


def build_report(
    study: str,
    results: Results,
    tables: Mapping[str, dict],
    figures: Mapping[str, dict],
    figure_paths: Mapping[str, str | os.PathLike],
    html_path: str | os.PathLike,
    *,
    totals: Mapping[str, dict],
    dedup: Mapping[str, str],
    made_by: Mapping[str, object],
    question: str = "",
    public_tests: Mapping[str, bool] | None = None,
    certificates: Mapping[str, dict] | None = None,
) -> None:
    """Write the report.

    Args:
        study: name of the study.
        results: its cells, in config order.
        tables, figures: the config's `tables` and `figures`.
        figure_paths: figure name -> path of its PNG.
        html_path: what is written.
        totals: data set -> what it would spend in all (`total_in_words`).
        dedup: public set -> mode, "private" or "public": what is dropped where the two sets match.
        made_by: {"config": hash, "library": hash, "versions": {package: version}}.
        question: what the study asks, a sentence.
        public_tests: data set -> whether the records that models are scored on are public.
        certificates: cell -> what accountants that had no part in it say of its ledger.

    Raises:
        StudyError: as `lay_out`; a figure is missing.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    axes = results.axes
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page = environment.get_template("report.html.j2").render(
        study=study,
        question=question or _question(axes),
        seeds=len({row["seed"] for row in results.summary}),
        axes=axes,
        tables=[_any_table(name, spec, results) for name, spec in tables.items()],
        figures=[_figure(name, spec, axes, figure_paths) for name, spec in figures.items()],
        ledgers=_ledgers(axes, results.ledgers, results.audits, certificates or {}),
        guarantees=GUARANTEES,
        tests={dataset: test_in_words(public) for dataset, public in (public_tests or {}).items()},
        totals={name: _total(total) for name, total in totals.items()},
        dedup={public: dedup_in_words(drop) for public, drop in dedup.items()},
        made_by=made_by,
    )
    with atomic(html_path) as temporary:
        Path(temporary).write_text(page, encoding="utf-8")


def _total(total: Mapping) -> str:
    return total_in_words(total) + spent_in_words(total.get("spent"), total.get("by_record", 0))


def _question(axes: Mapping[str, list[str]]) -> str:
    return (
        f"How accurate are {joined(axes['entries'])} on {joined(axes['datasets'])} under differential privacy, "
        f"with {joined(axes['features'])} as features?"
    )


def _any_table(name: str, spec: dict, results: Results) -> dict:
    """A table of the config as strings, by its style."""
    style = spec.get("style", "plain")
    if style in SHEETS:
        return _text_table(SHEETS[style](name, spec, results))
    if style in _BY_EPSILON:
        return _table(lay_out(name, spec, results))
    return {"kind": "file", "name": name, "caption": spec.get("caption") or name}


def _text_table(sheet: Sheet) -> dict:
    return {
        "kind": "text",
        "name": sheet.name,
        "caption": sheet.caption or sheet.name,
        "header": sheet.header,
        "rows": [row for block in sheet.blocks for row in block],
        "notes": sheet.notes,
    }


def _table(table: Table) -> dict:
    """A laid-out table as strings."""
    return {
        "kind": "by epsilon",
        "name": table.name,
        "caption": table.caption or table.name,
        "several": len(table.datasets) > 1,
        "columns": [
            {
                "epsilon": "∞" if column.epsilon == "inf" else column.epsilon,
                "certified": "–" if column.certified is None else f"≤ {upper_bound(column.certified)}",
                "guarantee": column.guarantee,
                "audited": "" if column.audited is None else f"attacked ≥ {rounded_down(column.audited)}",
            }
            for column in table.columns
        ],
        "rows": [
            {
                "dataset": row.dataset,
                "group": row.group,
                "label": row.label if row.epochs is None else f"{row.label}, epochs: {row.epochs}",
                "cells": [_cell(cell, column, table) for cell, column in zip(row.cells, table.columns, strict=True)],
            }
            for row in table.rows
        ],
        "notes": notes(table),
        "marks": marks(table),
    }


def _cell(cell: Cell, column: Column, table: Table) -> dict:
    published, digits = cell.published, table.digits_of(cell)
    beside = difference = ""
    if published is not None:
        beside = f"≤ {published.at_most:g}" if published.value is None else published.text
    if cell.difference is not None:
        difference = signed(cell.difference, digits).replace("-", "−")
    certified = "no certified ε" if cell.certified is None else f"certified ε ≤ {upper_bound(cell.certified)}"
    if cell.audited is not None:
        certified += f", attacked ε ≥ {rounded_down(cell.audited)}"
    return {
        "order": "" if cell.ours is None else repr(cell.ours),
        "value": "–" if cell.ours is None else f"{cell.ours:.{digits}f}",
        "std": f"{cell.std:.{digits}f}" if cell.seeds > 1 else "",
        "interval": interval_text(cell.interval, digits),
        "published": beside,
        "difference": difference,
        "mark": mark_of(cell, column),
        "title": "no such cell" if cell.ours is None else f"{certified}; {cell.seeds} seeds",
    }


def _figure(name: str, spec: dict, axes: Mapping, paths: Mapping) -> dict:
    try:
        content = Path(paths[name]).read_bytes()
    except (KeyError, FileNotFoundError):
        raise StudyError(f"figure {name}: its PNG is missing; run snakemake again to remake it") from None
    title = spec.get("title") or name
    caption, alt = figure_captions(spec, axes, f"the numbers stand in results/figures/{name}.csv")
    png = base64.b64encode(content).decode("ascii")
    return {"name": name, "caption": f"{title}: {caption}", "alt": f"{title}: {alt}", "png": png}


def _ledgers(axes: Mapping[str, list[str]], paths: Mapping, audits: Mapping, certified: Mapping) -> list[dict]:
    """The ledgers in words, grouped by (data set, features, entry), in config order."""
    groups = []
    for dataset in axes["datasets"]:
        for features in axes["features"]:
            for entry in axes["entries"]:
                named = [(e, cell_name(dataset, features, entry, e)) for e in axes["epsilons"]]
                cells = [
                    _ledger(e, read_json(paths[name]), audits.get(name), certified.get(name))
                    for e, name in named
                    if name in paths
                ]
                if cells:
                    groups.append({"dataset": dataset, "features": features, "entry": entry, "cells": cells})
    return groups


def _ledger(epsilon: str, ledger: dict, audit: str | None, certificate: Mapping | None) -> dict:
    return {
        "epsilon": "∞" if epsilon == "inf" else epsilon,
        **ledger_in_words(ledger),
        "audit": audit_in_words(read_json(audit), ledger["guarantee"]) if audit else [],
        "anew": certificate_in_words(certificate) if certificate else "",
    }
