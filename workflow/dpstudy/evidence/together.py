"""Verdicts on claims from recorded accuracies: of all full-size studies together, of each other study alone."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from dpstudy.evaluation.metrics import metric_of
from dpstudy.evidence.measured import FULL, Measured
from dpstudy.evidence.verdicts import Verdict, may_judge
from dpstudy.plan.documents import claims_table
from dpstudy.plan.targets import axes
from dpstudy.tables.claims.finding import CELLS, OPEN, UNDECIDED
from dpstudy.tables.claims.gather import PAPERS, Place, evidence_of, of_methods, places
from dpstudy.tables.claims.grid import Value
from dpstudy.tables.claims.judge import claims_rows, judges
from dpstudy.tables.claims.scores import Evidence, Run, keeps
from dpstudy.tables.published import claims_of

MEHTA2023 = "mehta2023"


class NotRecordedError(Exception):
    """A claim needs documents that measured.csv does not hold, and is judged within its study instead."""


class _Recorded(Mapping[Any, Any]):
    """The part of a document that was recorded."""

    def __init__(self, **known: Any):
        self.known = known

    def __getitem__(self, key: Any) -> Any:
        if key not in self.known:
            raise NotRecordedError(key)
        return self.known[key]

    def __iter__(self) -> Iterator[Any]:
        raise NotRecordedError

    def __len__(self) -> int:
        raise NotRecordedError


def judged_together(studies: Iterable[Mapping], measured: Iterable[Measured]) -> list[Verdict]:
    """The verdicts by recorded accuracies: on papers whose experiments have roles by all full-size cells together, and
    by each reduced or stand-in study alone; on mehta2023, which compares methods, by each study.

    Args:
        studies: the shipped ones, checked.
        measured: the recorded lines.
    """
    studies, lines = list(studies), {line.key: line for line in measured}
    pairs_by_paper: dict[tuple[str, str, str], list[tuple[Run, Measured]]] = {}
    specs: dict[tuple[str, str], Mapping] = {}
    for study in studies:
        for paper in PAPERS:
            if table := claims_table(dict(study), paper):
                spec = study["tables"][table]
                for place in places(table, spec, axes(dict(study))):
                    if line := lines.get((study["study"], *place.cell, spec.get("metric", "top1"))):
                        alone = "" if line.kind == FULL else line.study
                        group = pairs_by_paper.setdefault((paper, alone, line.kind), [])
                        group.append((place.run(*_documents(line)), line))
                        specs[paper, alone] = spec
    found = [one for group, pairs in pairs_by_paper.items() for one in _of_roles(*group, pairs)]
    found += [one for study in studies for one in _of_methods(study, list(lines.values()), specs)]
    return [
        one
        for one in found
        if may_judge(one.paper, one.claim, specs[one.paper, "" if one.kind == FULL else one.study], one.kind)
    ]


def _documents(line: Measured) -> tuple[int, Value, _Recorded, _Recorded]:
    """The number of records, the accuracy, metrics and ledger of a cell, as `Place.run` takes them."""
    ledger = {"guarantee": line.guarantee, "epsilon": float(line.certified or math.inf), "delta": float(line.delta)}
    return line.n, _value(line), _Recorded(), _Recorded(**ledger, n=line.n, unit=line.unit, noise=line.noise)


def _value(line: Measured) -> Value:
    scale = 1.0 if metric_of(line.metric).percent else 100.0  # claims compare percent
    return Value(scale * line.mean, scale * line.std / math.sqrt(line.seeds) if line.seeds > 1 else None)


def _of_roles(paper: str, study: str, kind: str, pairs: Sequence[tuple[Run, Measured]]) -> list[Verdict]:
    """Of several studies together those are named without which the numbers would be others."""

    def of(name: str, kept: Sequence[tuple[Run, Measured]]) -> list[Verdict]:
        evidence = evidence_of(paper, [run for run, _ in kept])
        return list(_verdicts(paper, name, kind, evidence, [line for _, line in kept]))

    names = list(dict.fromkeys(line.study for _, line in pairs))
    if len(names) == 1:
        return of(study or names[0], pairs)
    without = {
        name: {one.claim: one.numbers for one in of(name, [pair for pair in pairs if pair[1].study != name])}
        for name in names
    }
    return [
        replace(one, study=", ".join([n for n in names if without[n].get(one.claim) != one.numbers] or names))
        for one in of("", pairs)
    ]


def _of_methods(study: Mapping, lines: Sequence[Measured], specs: dict[tuple[str, str], Mapping]) -> Iterator[Verdict]:
    """The verdicts on claims of mehta2023, which compares methods: of each study and kind alone."""
    table = claims_table(dict(study), MEHTA2023)
    own = [line for line in lines if table and line.study == study["study"] and line.metric == "top1"]
    for kind in dict.fromkeys(line.kind for line in own):
        spec = specs[MEHTA2023, "" if kind == FULL else study["study"]] = study["tables"][table]
        of_kind = [line for line in own if line.kind == kind and keeps(_documents(line)[-1], float(line.epsilon))]
        evidence = of_methods(table, spec, axes(dict(study)), partial(_runs, of_kind))
        yield from _verdicts(MEHTA2023, study["study"], kind, evidence, of_kind)


def _runs(lines: Iterable[Measured], places: Iterable[Place]) -> list[Run]:
    """Those of some cells that were recorded."""
    by_cell = {line.key[1:5]: line for line in lines}
    return [place.run(*_documents(by_cell[place.cell])) for place in places if place.cell in by_cell]


def _verdicts(paper: str, names: str, kind: str, evidence: Evidence, lines: Sequence[Measured]) -> Iterator[Verdict]:
    claims = claims_of(paper)
    what = "; ".join(dict.fromkeys(line.what for line in lines if line.what))
    for name, judge in judges(paper).items():
        try:
            one = judge(evidence)
        except NotRecordedError:
            continue
        if one.decided_by == CELLS or (one.verdict == OPEN and UNDECIDED in one.here):
            ((claim, _, _, here),) = claims_rows([(claims[name], one)])
            date = max(line.date for line in lines)
            cells = len({line.key for line in lines})
            yield Verdict(paper, claim, names, one.verdict, here, kind, what, date, cells)
