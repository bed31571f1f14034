"""The reproduction status of each number that the papers print, by a rule, from measured.csv and a file of reasons."""

import functools
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dpstudy.evidence.measured import FULL, Measured
from dpstudy.evidence.printed import CERTIFIED, Place
from dpstudy.tables.published import RESULTS, numbered_rows

REPRODUCED, CONSISTENT, DIFFERS = "reproduced", "consistent", "differs"
NOT_COMPARABLE, NEEDS, CITED = "not comparable", "needs", "cited"
LABELS = (REPRODUCED, CONSISTENT, DIFFERS, NOT_COMPARABLE, NEEDS, CITED)
REASONS = RESULTS.with_name("reasons.csv")
MARGIN = 1.0  # percentage points: how near a number is called reproduced
_SEEDS = 3  # the fewest that reproduce
_COLUMNS = ("paper", "table", "dataset", "pretraining", "model", "method")


@dataclass(frozen=True)
class Label:
    """The reproduction status of one printed number.

    Attributes:
        name: one of LABELS.
        text: what it says beside its name: by how much, why, or what is needed; "" where the name says all.
        row: the measured line that it rests on; None where there is none.
    """

    name: str
    text: str = ""
    row: Measured | None = None


def label(printed: Mapping[str, str], rows: Sequence[Measured], noise: str = CERTIFIED) -> Label:
    """The status of a printed number, given the measured lines beside it.

    Args:
        printed: its line of results.csv.
        rows: measured lines of cells that a table puts beside it.
        noise: as of `Place`, of all of them.
    """
    if printed["source"]:
        return Label(CITED, f"a number of {printed['source']}")
    full = [row for row in rows if row.kind == FULL]
    if full and printed["value"]:
        return _compared(float(printed["value"]), max(full, key=lambda row: row.seeds), printed, noise)
    if full:
        return Label(CONSISTENT if full[0].mean <= 20 else DIFFERS, "printed as at most 20", full[0])
    if rows:
        kinds = "; ".join(dict.fromkeys(f"{row.kind}: {row.what}" for row in rows))
        return Label(NOT_COMPARABLE, kinds, rows[0])
    return Label(NEEDS, reason(printed, NEEDS))


def _compared(value: float, row: Measured, printed: Mapping[str, str], noise: str) -> Label:
    """By the 95 % interval of the difference to what is printed, whose own spread counts where it is printed."""
    apart = row.mean - value
    half = (row.high - row.low) / 2 if row.low is not None and row.high is not None else math.inf
    half = math.hypot(half, 1.96 * float(printed["std"] or 0))
    if noise == CERTIFIED and not (row.certified and float(row.certified) <= float(printed["epsilon"])):
        noise = f"at a certified ε of {row.certified}" if row.certified else "without a proved ε"
    difference = f"{apart:+.1f} ± {half:.1f} {noise}, {row.seeds} seed{'s' if row.seeds > 1 else ''}"
    if abs(apart) + half <= MARGIN and row.seeds >= _SEEDS:
        return Label(REPRODUCED, difference, row)
    if abs(apart) - half <= MARGIN:
        return Label(CONSISTENT, difference, row)
    return Label(DIFFERS, f"{difference}: {reason(printed, DIFFERS) or 'unexplained'}", row)


def labels(
    lines: Mapping[int, Mapping[str, str]], places: Mapping[int, Sequence[Place]], measured: Iterable[Measured]
) -> dict[int, Label]:
    """Line number -> the status of every printed number.

    Args:
        lines: of results.csv, by number (`published.all_lines`).
        places: which cells stand beside which (`printed.places`).
        measured: all recorded lines. Those at the printed noise count before those at the same certified epsilon.
    """
    known, by_line = {row.key: row for row in measured}, {}
    for number, printed in lines.items():
        ours = [place for place in places.get(number, ()) if place.key in known]
        same = [place for place in ours if place.noise != CERTIFIED] or ours
        by_line[number] = label(printed, [known[place.key] for place in same], same[0].noise if same else CERTIFIED)
    return by_line


def reason(printed: Mapping[str, str], about: str) -> str:
    """The first recorded reason that applies to a printed number; "" where there is none."""
    for row in _reasons(REASONS):
        if row["about"] == about and all(row[key] in ("", printed[key]) for key in _COLUMNS):
            return row["reason"]
    return ""


@functools.cache
def _reasons(path: str | os.PathLike) -> list[dict[str, str]]:
    return [row for _, row in numbered_rows(path)]
