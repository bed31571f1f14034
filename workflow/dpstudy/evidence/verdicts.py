"""Verdicts on the papers' claims, pooled over recorded studies: `workflow/published/verdicts.csv`."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from dpstudy.config.cells import Cell, unfold
from dpstudy.evaluation.csv_file import write_csv
from dpstudy.evaluation.summary import summarise
from dpstudy.evidence.lines import damaged, read_lines
from dpstudy.evidence.measured import FULL, KINDS, MEASURED
from dpstudy.plan import paths
from dpstudy.plan.documents import Names, claims_table, files_of, names_of_claims
from dpstudy.plan.targets import axes
from dpstudy.report.claims import REFERENCES, judge_paper
from dpstudy.tables.claims.finding import CELLS, COMPUTED, FAILS, HOLDS, MEASUREMENT, OPEN, PRINTED, UNDECIDED
from dpstudy.tables.claims.judge import chosen, printed_claim
from dpstudy.tables.grouping import by_key
from dpstudy.tables.results import Results
from dpstudy.tables.selecting import AXES

VERDICTS = MEASURED.with_name("verdicts.csv")
MIXED = "holds in some studies alone"


@dataclass(frozen=True)
class Verdict:
    """The verdict of one study's cells on one claim.

    Attributes:
        paper, claim: the claim in our words, with its section.
        study: whose cells.
        verdict: HOLDS, FAILS, or OPEN where its cells were compared and noise decides.
        numbers: that it rests on.
        kind, what: as of a measured line.
        date: when it was judged.
        cells: of how many cells.
    """

    paper: str
    claim: str
    study: str
    verdict: str
    numbers: str
    kind: str
    what: str
    date: str
    cells: int

    @property
    def key(self) -> tuple[str, str, str]:
        """The columns that identify a verdict; a new recording replaces the one with the same key."""
        return self.paper, self.claim, self.study


@dataclass(frozen=True)
class Pooled:
    """The verdict on a claim over all studies: HOLDS, FAILS, MIXED or OPEN, what decided it, and the numbers.

    `kind` is that of the cells, else what decided it; "" where nothing did.
    """

    paper: str
    claim: str
    verdict: str
    kind: str
    by: str
    numbers: str


_COLUMNS = tuple(field.name for field in fields(Verdict))


def read(path: str | os.PathLike = VERDICTS) -> list[Verdict]:
    """The recorded verdicts; none where there is no file.

    Raises:
        StudyError: a line is damaged.
    """
    lines = []
    for number, line in read_lines(path, _COLUMNS):
        if line["verdict"] not in (HOLDS, FAILS, OPEN) or line["kind"] not in KINDS:
            raise damaged(path, number, "its verdict or kind is none")
        if not line["cells"].isdigit():
            raise damaged(path, number, "its cells are no number")
        lines.append(Verdict(**line | {"cells": int(line["cells"])}))  # type: ignore[arg-type]
    return lines


def write(verdicts: Iterable[Verdict], path: str | os.PathLike = VERDICTS) -> None:
    """Write the file.

    Raises:
        StudyError: it cannot be written.
    """
    write_csv(path, _COLUMNS, map(astuple, verdicts))


def merged(old: Iterable[Verdict], new: Sequence[Verdict], study: str, whole: bool) -> list[Verdict]:
    """The old and new verdicts in order of papers and studies.

    A study that was judged whole replaces all its earlier verdicts; a part replaces those that it judges by at least as
    many cells.
    """
    known = {one.key: one for one in old if not (whole and one.study == study)}
    later = {one.key: one for one in new if one.key not in known or known[one.key].cells <= one.cells}
    return sorted((known | later).values(), key=lambda one: (one.paper, one.study))


def of_results(study: dict, results: str | os.PathLike, kind: str, what: str, date: str) -> tuple[list[Verdict], bool]:
    """The verdicts of a study's finished cells on the claims that its tables judge, and whether all cells are finished.

    A verdict of a part of the cells says how many they are.

    Raises:
        StudyError: as `summarise` and `judge_paper`.
    """
    verdicts, whole = [], True
    cells = {cell.path: cell for cell in unfold(study)}
    finished = {name: cell for name, cell in cells.items() if _below(results, paths.METRICS, name).exists()}
    for paper in REFERENCES:
        table = claims_table(study, paper)
        if not table:
            continue
        names = names_of_claims(study, paper)
        judged = [name for name in names["metrics"] if name in finished]
        part = len(judged) < len(names["metrics"])
        whole = whole and not part
        judgement = judge_paper(paper, table, study["tables"][table], _results(study, results, names, finished))
        for verdict, claim, by, _, here in judgement["rows"]:
            if not may_judge(paper, claim, study["tables"][table], kind):
                continue
            if f"({CELLS})" in by or (verdict == OPEN and UNDECIDED in here):
                numbers = f"{here} By {len(judged)} of its {len(names['metrics'])} cells." if part else here
                verdicts.append(Verdict(paper, claim, study["study"], verdict, numbers, kind, what, date, len(judged)))
    return verdicts, whole


def may_judge(paper: str, claim: str, spec: Mapping, kind: str) -> bool:
    """Whether a study's cells decide a claim: reduced ones and stand-ins only those that their table names, if any.

    A stand-in for one network does not decide whether the accuracy printed of another is reached, nor what is said of
    the paper's tables themselves.
    """
    return kind == FULL or claim in (
        printed_claim(row) for row in chosen(paper, spec.get("sections")).values() if "about_the_tables" not in row
    )


def _below(results: str | os.PathLike, pattern: str, cell: str = "") -> Path:
    """A path of `plan.paths`, which are relative to the folder that holds `results`."""
    return Path(results).parent / pattern.replace(paths.CELL, cell)


def _results(study: dict, results: str | os.PathLike, names: Names, there: Mapping[str, Cell]) -> Results:
    """What is finished of the documents that claims are judged by."""
    files: dict[str, list] = {}
    finished: Names = {}
    for document, wanted in names.items():
        pairs = [(name, _below(results, files_of(study, {document: [name]})[document][0])) for name in wanted]
        pairs = [(name, path) for name, path in pairs if path.exists()]
        finished[document], files[document] = [name for name, _ in pairs], [path for _, path in pairs]
    metrics = {name: str(_below(results, paths.METRICS, name)) for name in there}
    cells = [{axis: getattr(cell, axis) for axis in AXES} | {"metrics": metrics[name]} for name, cell in there.items()]
    return Results.assemble(axes(study), summarise(cells).to_pylist(), finished, files)


def pool(verdicts: Sequence[Verdict], together: Sequence[Verdict] = ()) -> list[Pooled]:
    """The pooled verdict on each of the papers' claims.

    Cells decide where some do, those that are nearest to the paper's; else the printed numbers or a computation; else
    the claim is open, with what cells say that cannot decide it. What the printed numbers contradict, only cells at
    full size confirm.

    Args:
        together: by recorded accuracies (`judged_together`): on all studies at full size at once, in the place of what
            each of them says; and of each other study, where it says nothing itself, or by fewer cells, or left open
            what these contradict.
    """
    replaced = {(one.paper, one.claim): one.verdict for one in together if one.kind == FULL}
    own = {one.key: one for one in verdicts}
    together = [one for one in together if one.kind == FULL or _says_more(one, own.get(one.key))]
    more = {one.key for one in together if one.kind != FULL}
    verdicts = [one for one in verdicts if (_stands(one, replaced) if one.kind == FULL else one.key not in more)]
    of_claim = by_key([*verdicts, *together], lambda one: (one.paper, one.claim))
    pooled = []
    for paper in REFERENCES:
        for verdict, claim, decided_by, printed, here in judge_paper(paper)["rows"]:
            compared = of_claim.get((paper, claim), [])
            contradicted = verdict == FAILS and f"({PRINTED})" in decided_by
            known = [one for one in compared if one.verdict != OPEN and (one.kind == FULL or not contradicted)]
            known = known or (compared if verdict == OPEN else [])
            if known:
                nearest = min(known, key=lambda one: KINDS.index(one.kind)).kind
                pooled.append(_of_cells(paper, claim, [one for one in compared if one.kind == nearest]))
                continue
            by = decided_by.partition("(")[2].rstrip(")") if verdict != OPEN else ""
            numbers = f"{printed} {here}".rstrip() if by in (MEASUREMENT, COMPUTED) else printed if by else here
            pooled.append(Pooled(paper, claim, verdict, by, by, numbers))
    return pooled


def _stands(one: Verdict, replaced: Mapping[tuple[str, str], str]) -> bool:
    """Whether a study's own verdict counts: where there is none on all at once, or it decides what that does not."""
    beside = replaced.get((one.paper, one.claim))
    return beside is None or (beside == OPEN and one.verdict != OPEN)


def _says_more(one: Verdict, own: Verdict | None) -> bool:
    """Whether a verdict by a study's recorded accuracies counts before its own, which had more documents."""
    if own is None or own.cells < one.cells:
        return True
    return (own.verdict, one.verdict) == (OPEN, FAILS) and own.cells == one.cells


def _of_cells(paper: str, claim: str, known: Sequence[Verdict]) -> Pooled:
    """By those that decide; what the others of the same kind leave open stands beside."""
    kinds: Mapping[str, None] = dict.fromkeys(sorted((one.verdict for one in known), key=lambda one: one == OPEN))
    kinds = {one: None for one in kinds if one != OPEN} or kinds
    studies = ", ".join(one.study + ("" if one.kind == FULL else f" ({one.kind}: {one.what})") for one in known)
    numbers = " ".join(f"{one.study}: {one.numbers}" if len(known) > 1 else one.numbers for one in known)
    verdict = next(iter(kinds)) if len(kinds) == 1 else MIXED
    return Pooled(paper, claim, verdict, "" if verdict == OPEN else known[0].kind, studies, numbers)
