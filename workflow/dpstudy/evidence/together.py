"""Verdicts on claims from the recorded accuracies of all studies together, for claims about several data sets."""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dpstudy.evidence.measured import FULL, Measured
from dpstudy.evidence.verdicts import Verdict
from dpstudy.plan.documents import claims_table
from dpstudy.tables.claims.finding import CELLS, OPEN, UNDECIDED
from dpstudy.tables.claims.grid import Value
from dpstudy.tables.claims.judge import claims_rows, judges
from dpstudy.tables.claims.role_evidence import PAPERS, evidence_of, places
from dpstudy.tables.claims.scores import Run
from dpstudy.tables.published import claims_of


class NotRecordedError(Exception):
    """A claim needs documents that measured.csv does not hold, and is judged within its study instead."""


class _Recorded(Mapping[str, Any]):
    """The part of a document that was recorded."""

    def __init__(self, **known: Any):
        self.known = known

    def __getitem__(self, key: str) -> Any:
        if key not in self.known:
            raise NotRecordedError(key)
        return self.known[key]

    def __iter__(self) -> Iterator[str]:
        raise NotRecordedError

    def __len__(self) -> int:
        raise NotRecordedError


def judged_together(studies: Iterable[Mapping], measured: Iterable[Measured]) -> list[Verdict]:
    """The verdicts of all recorded full-size cells together, on papers whose experiments have roles.

    Args:
        studies: the shipped ones, checked.
        measured: the recorded lines.
    """
    lines = {line.key: line for line in measured if line.kind == FULL}
    found: dict[str, list[tuple[Run, Measured]]] = {}
    for study in studies:
        for paper, printed in PAPERS.items():
            if table := claims_table(dict(study), paper):
                spec = study["tables"][table]
                for place in places(spec, study["epsilons"], printed.by_backbone):
                    if line := lines.get((study["study"], *place.cell, spec.get("metric", "top1"))):
                        found.setdefault(paper, []).append((place.run(*_documents(line)), line))
    return [one for paper, pairs in found.items() for one in _verdicts(paper, pairs)]


def _documents(line: Measured) -> tuple:
    value = Value(line.mean, line.std / math.sqrt(line.seeds) if line.seeds > 1 else None)
    ledger = _Recorded(
        guarantee=line.guarantee,
        epsilon=float(line.certified or math.inf),
        delta=float(line.delta),
        n=line.n,
        unit=line.unit,
        noise=line.noise,
    )
    return line.n, value, _Recorded(), ledger


def _verdicts(paper: str, pairs: list[tuple[Run, Measured]]) -> Iterator[Verdict]:
    evidence, claims = evidence_of(paper, [run for run, _ in pairs]), claims_of(paper)
    names = ", ".join(dict.fromkeys(line.study for _, line in pairs))
    for name, judge in judges(paper).items():
        try:
            one = judge(evidence)
        except NotRecordedError:
            continue
        if one.decided_by == CELLS or (one.verdict == OPEN and UNDECIDED in one.here):
            ((claim, _, _, here),) = claims_rows([(claims[name], one)])
            date = max(line.date for _, line in pairs)
            yield Verdict(paper, claim, names, one.verdict, here, FULL, "", date, len(pairs))
