"""Verdicts on claims from recorded accuracies: of all full-size studies together, of each other study alone."""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dpstudy.evaluation.metrics import metric_of
from dpstudy.evidence.measured import FULL, Measured
from dpstudy.evidence.verdicts import Verdict, may_judge
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
    """The verdicts on papers whose experiments have roles: of all full-size cells together, and of each reduced or
    stand-in study alone.

    Args:
        studies: the shipped ones, checked.
        measured: the recorded lines.
    """
    lines = {line.key: line for line in measured}
    pairs_by_paper: dict[tuple[str, str, str], list[tuple[Run, Measured]]] = {}
    specs: dict[tuple[str, str], Mapping] = {}
    for study in studies:
        for paper, printed in PAPERS.items():
            if table := claims_table(dict(study), paper):
                spec = study["tables"][table]
                for place in places(spec, study["epsilons"], printed.by_backbone):
                    if line := lines.get((study["study"], *place.cell, spec.get("metric", "top1"))):
                        alone = "" if line.kind == FULL else line.study
                        group = pairs_by_paper.setdefault((paper, alone, line.kind), [])
                        group.append((place.run(*_documents(line)), line))
                        specs[paper, alone] = spec
    return [
        one
        for group, pairs in pairs_by_paper.items()
        for one in _verdicts(*group, pairs)
        if may_judge(one.paper, one.claim, specs[group[:2]], one.kind)
    ]


def _documents(line: Measured) -> tuple:
    scale = 1.0 if metric_of(line.metric).percent else 100.0  # claims compare percent
    value = Value(scale * line.mean, scale * line.std / math.sqrt(line.seeds) if line.seeds > 1 else None)
    ledger = _Recorded(
        guarantee=line.guarantee,
        epsilon=float(line.certified or math.inf),
        delta=float(line.delta),
        n=line.n,
        unit=line.unit,
        noise=line.noise,
    )
    return line.n, value, _Recorded(), ledger


def _verdicts(paper: str, study: str, kind: str, pairs: list[tuple[Run, Measured]]) -> Iterator[Verdict]:
    evidence, claims = evidence_of(paper, [run for run, _ in pairs]), claims_of(paper)
    names = study or ", ".join(dict.fromkeys(line.study for _, line in pairs))
    what = "; ".join(dict.fromkeys(line.what for _, line in pairs if line.what))
    for name, judge in judges(paper).items():
        try:
            one = judge(evidence)
        except NotRecordedError:
            continue
        if one.decided_by == CELLS or (one.verdict == OPEN and UNDECIDED in one.here):
            ((claim, _, _, here),) = claims_rows([(claims[name], one)])
            date = max(line.date for _, line in pairs)
            yield Verdict(paper, claim, names, one.verdict, here, kind, what, date, len(pairs))
