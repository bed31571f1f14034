"""The files of `make evidence`: docs/evidence.md, evidence.csv, claims.csv, and measured tables in other pages."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import astuple, fields
from pathlib import Path
from textwrap import fill

from dpstudy.core.files import atomic
from dpstudy.evaluation.csv_file import write_csv
from dpstudy.evidence import goals
from dpstudy.evidence.labels import CONSISTENT, DIFFERS, LABELS, NEEDS, NOT_COMPARABLE, Label, labels
from dpstudy.evidence.markdown import table
from dpstudy.evidence.measured import KINDS, Measured
from dpstudy.evidence.page_tables import renew
from dpstudy.evidence.printed import places
from dpstudy.evidence.record import shipped_studies
from dpstudy.evidence.together import judged_together
from dpstudy.evidence.verdicts import MIXED, Pooled, Verdict, pool
from dpstudy.provenance.code import WORKFLOW
from dpstudy.tables.claims.finding import COMPUTED, FAILS, HOLDS, MEASUREMENT, OPEN, PRINTED
from dpstudy.tables.grouping import by_key
from dpstudy.tables.published import all_lines

_VERDICTS = (HOLDS, FAILS, MIXED, OPEN)
_DECIDING = (*KINDS, MEASUREMENT, PRINTED, COMPUTED)
PAGE = WORKFLOW.parent / "docs" / "evidence.md"
_HEAD = """\
# Evidence: what became of each printed number

`make evidence` writes this page and [evidence.csv](evidence.csv), which has every number by itself, from
`workflow/published/measured.csv`, where `make record` puts finished cells. Nothing here is typed.

*reproduced*: at least three seeds, and the 95 % interval of the difference within ± 1 point. *consistent*: that
interval reaches into ± 1 point. *differs*: it does not. *not comparable*: ours is reduced, or stands in for
what is not to be had. *needs*: we have no number, for want of what is named. *cited*: the paper quotes somebody
else. An interval counts seeds, test records and the printed deviation, where there is one. Each says whether the
noise is the printed one or certifies the printed ε.

"""
_COLUMNS = ("paper", "table", "dataset", "pretraining", "model", "method", "epochs", "epsilon", "metric", "statistic")
_OURS = ("printed", "label", "says", "study", "features", "entry", "ours", "low", "high", "seeds", "date", "machine")


def write(
    measured: Sequence[Measured], verdicts: Sequence[Verdict] = (), page: str | os.PathLike = PAGE
) -> tuple[Counter, Counter]:
    """Write the page and the CSV files beside it.

    Returns:
        how many numbers have which label, and how many claims which verdict.
    """
    lines = all_lines()
    studies = {study["study"]: study for study in shipped_studies()}
    label_by_line = labels(lines, places(studies.values()), measured)
    pooled = pool(verdicts, judged_together(studies.values(), measured))
    with atomic(page) as temporary:
        temporary.write_text(text(lines, label_by_line) + _claims(pooled), encoding="utf-8")
    numbers = (_fields(number, lines[number], label) for number, label in label_by_line.items())
    write_csv(Path(page).with_suffix(".csv"), ("line", *_COLUMNS, *_OURS), numbers)
    renew(Path(page).parent, studies, measured)
    goals.write(measured, Path(page).with_name("goals.md"))
    write_csv(Path(page).with_name("claims.csv"), tuple(field.name for field in fields(Pooled)), map(astuple, pooled))
    return Counter(label.name for label in label_by_line.values()), Counter(one.verdict for one in pooled)


def text(lines: Mapping[int, Mapping[str, str]], found: Mapping[int, Label]) -> str:
    """The text of the page."""
    by_paper: dict[str, Counter] = {}
    for number, label in found.items():
        by_paper.setdefault(lines[number]["paper"], Counter())[label.name] += 1
    by_paper["all"] = sum(by_paper.values(), Counter())
    counts = [(name, *_counted(of_paper, LABELS), str(of_paper.total())) for name, of_paper in by_paper.items()]
    needs = Counter((lines[number]["paper"], label.text) for number, label in found.items() if label.name == NEEDS)
    apart = Counter((lines[n]["paper"], label.text) for n, label in found.items() if label.name == NOT_COMPARABLE)
    beside = [_beside(lines[n], label) for n, label in found.items() if label.name == DIFFERS]
    return (
        _HEAD
        + table(("paper", *LABELS, "printed"), counts)
        + "\n## What differs\n\n"
        + table(("paper", "table", "of", "ε", "printed", "ours", "label", "study"), beside, "Nothing.\n")
        + _within(lines, found)
        + "\n## What is not comparable\n\n"
        + table(("paper", "numbers", "ours"), _by_number(apart), "Nothing yet.\n")
        + "\n## What the others need\n\n"
        + table(("paper", "numbers", "needs"), _by_number(needs))
    )


def _within(lines: Mapping[int, Mapping[str, str]], found: Mapping[int, Label]) -> str:
    """What differs by more than its interval, and yet may differ by no more than the margin."""
    known = [(lines[number], label) for number, label in found.items() if label.name == CONSISTENT and label.row]
    apart = [
        f"{printed['paper']} Table {printed['table']} {label.text.partition(' at ')[0].partition(' without')[0]}"
        for printed, label in known
        if label.row and label.row.low and label.row.high and printed["value"]
        if not label.row.low <= float(printed["value"]) <= label.row.high
    ]
    sentence = fill(f"Consistent, though the interval leaves out 0: {', '.join(apart)}.", 110)
    return f"\n{sentence}\n" if apart else ""


def _counted(counts: Counter, names: Sequence[str]) -> list[str]:
    return [str(counts[name] or "") for name in names]


def _by_number(counts: Counter) -> list[tuple[str, str, str]]:
    return [(paper, str(count), what) for (paper, what), count in counts.items()]


def _claims(pooled: Sequence[Pooled]) -> str:
    by_paper = by_key(pooled, lambda one: one.paper)
    found = [verdict for verdict in _VERDICTS if verdict != MIXED or any(one.verdict == MIXED for one in pooled)]
    counts = [(name, *_counted(Counter(one.verdict for one in of), found)) for name, of in by_paper.items()]
    of_kind = [
        (kind, *_counted(Counter(one.verdict for one in pooled if one.kind == kind), found[:-1])) for kind in _DECIDING
    ]
    return (
        "\n## The claims\n\nBy the cells of recorded studies where some decide a claim, those at full size, all at "
        "once, before others;\nelse by the printed numbers, which contradict a claim sooner than they confirm it, or "
        "by computation or a measurement.\nWhere noise leaves a comparison open, it contradicts if our mean "
        "difference, and three standard errors, are less than\nhalf of the least that the paper prints. "
        "[claims.csv](claims.csv) has each with its numbers.\n\n"
        + table(("paper", *found), counts)
        + "\n"
        + table(("decided by", *found[:-1]), of_kind)
    )


def _beside(printed: Mapping[str, str], label: Label) -> tuple[str, ...]:
    assert label.row
    what = ", ".join(filter(None, (printed[key] for key in ("dataset", "pretraining", "model", "method", "epochs"))))
    epsilon = "∞" if printed["epsilon"] == "inf" else printed["epsilon"]
    ours = f"{label.row.mean:.1f}" + (f" ± {label.row.std:.1f}" if label.row.seeds > 1 else "")
    where = f"{label.row.study}: {label.row.features}/{label.row.entry}"
    verdict = f"{label.name}, {label.text}" if label.text else label.name
    return printed["paper"], printed["table"], what, epsilon, printed["value"] or "≤ 20", ours, verdict, where


def _fields(number: int, printed: Mapping[str, str], label: Label) -> list:
    values = [number, *(printed[key] for key in _COLUMNS), printed["value"], label.name, label.text]
    row = label.row
    if row is None:
        return values + [""] * (len(_OURS) - 3)
    ends = ["" if end is None else f"{end:.2f}" for end in (row.low, row.high)]
    return [*values, row.study, row.features, row.entry, f"{row.mean:.2f}", *ends, row.seeds, row.date, row.machine]
