"""The report's page: question, tables, figures, subgroups, claims, privacy, and how the study was made."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from dpstudy.core.files import atomic, read_json
from dpstudy.report.claims import describe_verdict
from dpstudy.report.duplicates import describe_dedup
from dpstudy.report.figures import describe_figure
from dpstudy.report.graph import draw, ordered
from dpstudy.report.groups import describe_groups
from dpstudy.report.ledgers import describe_ledgers
from dpstudy.report.runs import RuleRun, read_runs
from dpstudy.report.tables import describe_table
from dpstudy.report.usefulness import describe_usefulness
from dpstudy.tables.labels import labels_of
from dpstudy.tables.names import enumerated
from dpstudy.tables.results import Results
from dpstudy.tables.styles import table_style
from dpstudy.tables.words import GUARANTEES, TESTED, spent_in_words, total_in_words, uncounted_in_words

TEMPLATES = Path(__file__).with_name("templates")
_OWN_RULE = "build_report"
_MEASURES = ("rule", "jobs", "time", "longest", "processor", "peak MB")


@dataclass(frozen=True)
class Making:
    """Facts on how a study was made.

    Attributes:
        config, library: hashes.
        versions: package -> version.
        benchmarks: folder of Snakemake's benchmark files; None: nothing is said of time and memory.
        graph: path of {"edges": [[rule, rule that reads from it, in how many jobs]]}; where there is none the rules are
            not drawn.
        date, commit: when it was made, and with which commit of the repository; "" where that is not known.
    """

    config: str
    library: str
    versions: Mapping[str, str]
    benchmarks: str | os.PathLike | None = None
    graph: str | os.PathLike | None = None
    date: str = ""
    commit: str = ""


@dataclass(frozen=True)
class Privacy:
    """Facts on privacy for the page besides ledgers and audits.

    Attributes:
        totals: data set -> what it would spend in all (`total_in_words`).
        dedup: public set -> {"drop", "method", "rule"}: what is dropped where the two sets match, and when they do.
        counted: public set -> the report.json of its comparison, which is told on a page that is not for publication.
        public_tests: data set -> whether the records that models are scored on are public.
        certificates: cell -> what accountants that had no part in it say of its ledger.
        unreadable: data set -> (images that were left out, all), which is told as `counted` is.
    """

    totals: Mapping[str, dict] = field(default_factory=dict)
    dedup: Mapping[str, dict] = field(default_factory=dict)
    counted: Mapping[str, dict] = field(default_factory=dict)
    public_tests: Mapping[str, bool] = field(default_factory=dict)
    certificates: Mapping[str, dict] = field(default_factory=dict)
    unreadable: Mapping[str, tuple[int, int]] = field(default_factory=dict)


def build_report(
    study: str,
    results: Results,
    tables: Mapping[str, dict],
    figures: Mapping[str, dict],
    figure_paths: Mapping[str, str | os.PathLike],
    html_path: str | os.PathLike,
    *,
    making: Making,
    privacy: Privacy | None = None,
    cells: Mapping[str, Sequence[str]] = MappingProxyType({}),
    question: str = "",
    useful: Mapping | None = None,
    claims: Sequence[dict] = (),
) -> None:
    """Write the report.

    Args:
        study: name of the study.
        results: its cells, in config order.
        tables, figures: the config's `tables` and `figures`.
        figure_paths: figure name -> path of its SVG.
        html_path: what is written.
        making: how it was made.
        privacy: what is said of privacy.
        cells: figure -> the cells that it draws something of.
        question: what the study asks, a sentence.
        useful: the config's `useful`.
        claims: what `judge_paper` found, paper by paper.

    Raises:
        StudyError: as `describe_table` and `describe_figure`.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    axes, privacy = results.axes, privacy or Privacy()
    confidential = not all(privacy.public_tests.values())
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    ledgers = describe_ledgers(axes, results.ledgers, results.audits, privacy.certificates, results.metrics)
    page = environment.get_template("report.html.j2").render(
        study=study,
        question=question or _question(axes),
        seeds=len({row["seed"] for row in results.summary}),
        usefulness=describe_usefulness(useful, results),
        tables=[describe_table(n, spec, results) for n, spec in tables.items() if not table_style(spec).judges],
        figures=[describe_figure(n, spec, results, figure_paths, cells.get(n, ())) for n, spec in figures.items()],
        groups=describe_groups(results, labels_of(tables)),
        claims=[describe_verdict(claim) for claim in claims],
        ledgers=ledgers,
        secure=any(cell["secure"] for group in ledgers for cell in group["cells"]),
        guarantees=GUARANTEES,
        tests={
            dataset: TESTED[public] + (_holes(*privacy.unreadable.get(dataset, (0, 0))) if confidential else "")
            for dataset, public in privacy.public_tests.items()
        },
        confidential=confidential,
        counted=bool(privacy.counted),
        totals={name: _total(total) for name, total in privacy.totals.items()},
        dedup={
            public: describe_dedup(**how, counted=privacy.counted.get(public) if confidential else None)
            for public, how in privacy.dedup.items()
        },
        made_by=making,
        **_ran(making),
    )
    with atomic(html_path) as temporary:
        Path(temporary).write_text(page, encoding="utf-8")


def _total(total: Mapping) -> str:
    return total_in_words(total) + spent_in_words(total.get("spent")) + uncounted_in_words(total)


def _holes(lost: int, whole: int) -> str:
    if not lost:
        return ""
    return f" Of its {whole:,} images {lost:,} cannot be read: no model learned from them, or is scored on them."


def _question(axes: Mapping[str, list[str]]) -> str:
    return (
        f"How accurate are {enumerated(axes['entries'])} on {enumerated(axes['datasets'])} under differential privacy, "
        f"with {enumerated(axes['features'])} as features?"
    )


def _ran(making: Making) -> dict:
    """The rules that ran, with what they took, and their drawing."""
    reads = {}
    if making.graph is not None and Path(making.graph).exists():
        reads = ordered(read_json(making.graph)["edges"])
    others = [rule for rule in reads if rule != _OWN_RULE]  # of this job nothing is known yet
    runs = read_runs(making.benchmarks, others) if making.benchmarks is not None else []
    declared = any(run.declared_mb is not None for run in runs)  # Snakemake's --benchmark-extended tells it
    lines = {run.rule: f"{run.jobs} {'job' if run.jobs == 1 else 'jobs'}, {clock(run.seconds)}" for run in runs}
    return {
        "runs": [_run(run, declared) for run in runs],
        "measures": [*_MEASURES, *(["declared MB"] if declared else [])],
        "seconds": clock(sum(run.seconds for run in runs)),
        "graph": draw(reads, lines) if reads else None,
    }


def _run(run: RuleRun, declared: bool) -> dict:
    """A rule's line: what is shown, beside what it is sorted by."""
    times = [(clock(seconds), seconds) for seconds in (run.seconds, run.longest, run.cpu_seconds)]
    shown: list[tuple[str, float]] = [(str(run.jobs), run.jobs), *times, (f"{run.peak_mb:,.0f}", run.peak_mb)]
    if declared:
        shown.append(("–" if run.declared_mb is None else f"{run.declared_mb:,}", run.declared_mb or 0))
    return {"rule": run.rule, "cells": [{"value": text, "order": repr(number)} for text, number in shown]}


def clock(seconds: float) -> str:
    """A duration in words: "0.4 s", "59 s", "3 min 4 s", "2 h 5 min".

    >>> clock(184)
    '3 min 4 s'
    """
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min"
