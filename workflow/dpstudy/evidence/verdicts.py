"""Verdicts on the papers' claims, pooled over recorded studies: `workflow/published/verdicts.csv`."""

import os
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json
from dpstudy.evaluation.csv_file import write_csv
from dpstudy.evidence.lines import damaged, read_lines
from dpstudy.evidence.measured import FULL, KINDS, MEASURED
from dpstudy.report.claims import REFERENCES, judge_paper
from dpstudy.tables.claims.finding import CELLS, FAILS, HOLDS, OPEN

VERDICTS = MEASURED.with_name("verdicts.csv")
MIXED = "holds in some studies alone"


@dataclass(frozen=True)
class Verdict:
    """What the cells of one study say of one claim.

    Attributes:
        paper, claim: the claim in our words, with its section.
        study: whose cells.
        verdict: HOLDS or FAILS.
        numbers: that it rests on.
        kind, what: as of a measured line.
        date: when it was judged.
    """

    paper: str
    claim: str
    study: str
    verdict: str
    numbers: str
    kind: str
    what: str
    date: str

    @property
    def key(self) -> tuple[str, str, str]:
        """What a later recording of the same replaces."""
        return self.paper, self.claim, self.study


@dataclass(frozen=True)
class Pooled:
    """The verdict on a claim of all that is known: HOLDS, FAILS, MIXED or OPEN, by what, and the numbers."""

    paper: str
    claim: str
    verdict: str
    by: str
    numbers: str


_COLUMNS = tuple(field.name for field in fields(Verdict))


def read(path: str | os.PathLike = VERDICTS) -> list[Verdict]:
    """The lines; none where there is no file.

    Raises:
        StudyError: a line is damaged.
    """
    found = []
    for number, line in read_lines(path, _COLUMNS):
        if line["verdict"] not in (HOLDS, FAILS) or line["kind"] not in KINDS:
            raise damaged(path, number, "its verdict or kind is none")
        found.append(Verdict(**line))
    return found


def write(verdicts: Iterable[Verdict], path: str | os.PathLike = VERDICTS) -> None:
    """Write the file anew.

    Raises:
        StudyError: it cannot be written.
    """
    write_csv(path, _COLUMNS, map(astuple, verdicts))


def merged(old: Iterable[Verdict], new: Sequence[Verdict], judged: Container[tuple[str, str]]) -> list[Verdict]:
    """The lines of both, without old ones of a (paper, study) that was judged anew, in order of papers and studies."""
    kept = [one for one in old if (one.paper, one.study) not in judged]
    return sorted([*kept, *new], key=lambda one: (one.paper, one.study))


def of_results(
    study: dict, results: str | os.PathLike, kind: str, what: str, date: str
) -> tuple[list[Verdict], list[tuple[str, str]]]:
    """What the cells of a study decide, as its claims/PAPER.json say; and which (paper, study) are judged there: a part
    of a study has no such file.

    Raises:
        StudyError: a file was judged before a cell that it is about was made.
    """
    found, judged = [], []
    for paper in REFERENCES:
        path = Path(results, "claims", f"{paper}.json")
        named = [
            name for name, spec in study["tables"].items() if spec.get("style") == "claims" and spec["paper"] == paper
        ]
        if not named or not path.exists():
            continue
        if any(cell.stat().st_mtime > path.stat().st_mtime for cell in Path(results, "cells").rglob("metrics.json")):
            raise StudyError(f"{path}: is older than a cell; run the study to its end, and record it then")
        judged.append((paper, study["study"]))
        for verdict, claim, told, _, here in read_json(path)["rows"]:
            if verdict != OPEN and f"({CELLS})" in told:
                found.append(Verdict(paper, claim, study["study"], verdict, here, kind, what, date))
    return found, judged


def pool(verdicts: Sequence[Verdict]) -> list[Pooled]:
    """The verdict on each of the papers' claims: by cells where some decide it, of those that are nearest to the
    paper's; else by what is printed, or by computation."""
    of_claim: dict[tuple[str, str], list[Verdict]] = {}
    for one in verdicts:
        of_claim.setdefault((one.paper, one.claim), []).append(one)
    found = []
    for paper in REFERENCES:
        for verdict, claim, told, printed, here in judge_paper(paper)["rows"]:
            known = of_claim.get((paper, claim), [])
            nearest = min((KINDS.index(one.kind) for one in known), default=None)
            if nearest is None:
                by = told.partition("(")[2].rstrip(")") if verdict != OPEN else ""
                found.append(Pooled(paper, claim, verdict, by, printed if by else here))
                continue
            found.append(_of_cells(paper, claim, [one for one in known if KINDS.index(one.kind) == nearest]))
    return found


def _of_cells(paper: str, claim: str, known: Sequence[Verdict]) -> Pooled:
    kinds: Mapping[str, None] = dict.fromkeys(one.verdict for one in known)
    studies = ", ".join(one.study + ("" if one.kind == FULL else f" ({one.kind}: {one.what})") for one in known)
    numbers = " ".join(f"{one.study}: {one.numbers}" if len(known) > 1 else one.numbers for one in known)
    return Pooled(paper, claim, next(iter(kinds)) if len(kinds) == 1 else MIXED, studies, numbers)
