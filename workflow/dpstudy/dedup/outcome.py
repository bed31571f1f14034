"""The outcome of de-duplication: which rows are kept, and its report.

Dropping private records that match a fixed public set is a rule about each private record alone: it costs no privacy
(`drop: private`). Dropping public images instead makes the public set, and all that is trained on it, depend on
private records (`drop: public`, as papers do): that is not accounted.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dpstudy.core.errors import StudyError
from dpstudy.core.files import write_json, write_table
from dpstudy.core.job import notice

Place = tuple[str, str]  # (data set, split)

_MODES = ("private", "public")
_MATCH_SCHEMA = pa.schema(
    [(name, pa.string()) for name in ("public", "public_split", "public_id", "dataset", "split", "private_id", "kind")]
    + [("score", pa.float64())]
)
_UNPLANTED = 0.01  # share of the sample; more are errors, or the public set was made from the private one
_PUBLISH = (
    "Do not publish this file: how many records of a private set match the public one is itself a statistic of"
    " private records. What may be published is the rule: the mode, the thresholds and the public set."
)


@dataclass(frozen=True)
class Rows:
    """The row ids of one split of one data set.

    Attributes:
        ids: (n,) of its rows, in order.
        compared: whether it has images that were compared.
    """

    ids: Sequence[str] | np.ndarray
    compared: bool = True


def match_table(rows: Iterable[tuple]) -> pa.Table:
    """A table of matches (public, public split, public id, data set, split, private id, kind, score)."""
    rows = list(rows)
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(_MATCH_SCHEMA)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, _MATCH_SCHEMA, strict=True)]
    return pa.table(arrays, schema=_MATCH_SCHEMA)


def resolve(
    matches: pa.Table, public: Mapping[Place, Rows], private: Mapping[Place, Rows], drop: str = "private"
) -> pa.Table:
    """The rows (dataset, split, id) that are kept, public ones first.

    Args:
        matches: those between the same rows.
        drop: the side of each match that goes, "private" or "public".

    Raises:
        StudyError: `drop` is neither.
    """
    if drop not in _MODES:
        raise StudyError(f"dedup: drop is {drop!r}; it must be private or public")
    matched = _matched(matches, drop)
    kept: dict[str, list[str]] = {"dataset": [], "split": [], "id": []}
    for side in (public, private):
        for (dataset, split), rows in side.items():
            gone = matched.get((dataset, split), {})
            ids = [name for name in map(str, rows.ids) if name not in gone]
            kept["dataset"] += [dataset] * len(ids)
            kept["split"] += [split] * len(ids)
            kept["id"] += ids
    return pa.table(kept, schema=pa.schema([(name, pa.string()) for name in kept]))


def report(
    matches: pa.Table, public: Mapping[Place, Rows], private: Mapping[Place, Rows], drop: str, rule: Mapping
) -> dict:
    """The report: what was compared, and how many rows of each split match and are dropped.

    Args:
        rule: how it was decided what a copy is.
    """
    sets = []
    for side, places in (("public", public), ("private", private)):
        matched = _matched(matches, side)
        for (dataset, split), rows in places.items():
            kinds = list(matched.get((dataset, split), {}).values())
            counts = {kind: kinds.count(kind) for kind in ("exact", "near")}
            facts = {"side": side, "dataset": dataset, "split": split, "rows": len(rows.ids), "compared": rows.compared}
            sets.append(facts | counts | {"dropped": len(kinds) if side == drop else 0})
    return {"drop": drop, **rule, "sets": sets, "publish": _PUBLISH}


def write(outputs: Mapping[str, str | os.PathLike], matches: pa.Table, kept: pa.Table, content: Mapping) -> None:
    """Write the files `matches`, `kept` and `report`, readable by their owner alone, and tell what the owner must know.

    Args:
        content: what `report` made, and maybe the `calibration`.
    """
    write_table(outputs["matches"], matches, private=True)
    write_table(outputs["kept"], kept, private=True)
    write_json(outputs["report"], content, private=True)
    for sentence in told(content):
        notice(sentence)


def told(content: Mapping) -> list[str]:
    """Sentences of a report that the owner must know; for the owner alone, as the report is.

    Args:
        content: what `report` made, and maybe the `calibration`.
    """
    private, public = ([row for row in content["sets"] if row["side"] == side] for side in ("private", "public"))
    matched = sum(row["exact"] + row["near"] for row in public)
    sentences = [
        f"{row['dropped']:,} of {row['rows']:,} private records of {row['dataset']}/{row['split']} "
        f"({_percent(row['dropped'], row['rows'])}) match public images and are left out"
        for row in private
        if row["dropped"]
    ]
    if matched:
        rows, what = sum(row["rows"] for row in public), "are left out" if content["drop"] == "public" else "stay"
        sentences.append(f"{matched:,} of {rows:,} public images match private ones and {what}")
    unplanted = (unplanted_in_words(each) for each in content.get("calibration", ()))
    return [*sentences, *filter(None, unplanted)]


def unplanted_in_words(calibration: Mapping) -> str:
    """A warning where unexpectedly many private images match public ones without planted copies; else "".

    Args:
        calibration: what `calibrate` counted.
    """
    unplanted, sample = calibration["unplanted"], calibration["sample"]
    if unplanted <= _UNPLANTED * sample:
        return ""
    return (
        f"of {sample:,} private images of {calibration['dataset']} {unplanted:,} ({_percent(unplanted, sample)}) match "
        f"public ones though nothing was planted, where at most {_UNPLANTED:.0%} is expected: look at matches.png, and "
        "where these are no copies but pictures that merely resemble each other, as drawings do, give `dedup: "
        "{threshold: 1}`: only what stands out is a copy then, and fewer changed copies of drawings are found"
    )


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.2g} %"


def _matched(matches: pa.Table, side: str) -> dict[Place, dict[str, str]]:
    """(data set, split) -> id -> "exact" if the row has an exact copy on the other side, else "near"."""
    names = ("dataset", "split", "private_id") if side == "private" else ("public", "public_split", "public_id")
    kinds_by_split: dict[Place, dict[str, str]] = {}
    columns = (matches.column(name).to_pylist() for name in (*names, "kind"))
    for dataset, split, name, kind in zip(*columns, strict=True):
        kinds = kinds_by_split.setdefault((dataset, split), {})
        if kinds.get(name) != "exact":
            kinds[name] = kind
    return kinds_by_split
