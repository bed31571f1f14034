"""Matches between public and private images, and which rows are kept.

Dropping private records that match a fixed public set is a rule about each private record alone: it costs no privacy
(`drop: private`). Dropping public images instead makes the public set, and all that is trained on it, depend on
private records (`drop: public`, as papers do): that is not accounted.
"""

import os
from collections.abc import Mapping

import pyarrow as pa

from dpstudy.data import shards
from dpstudy.data.records import Records
from dpstudy.dedup.exact import exact_pairs
from dpstudy.dedup.grey import common_side
from dpstudy.dedup.perceptual import near_pairs
from dpstudy.errors import StudyError
from dpstudy.files import write_json, write_table
from dpstudy.progress import progress

Place = tuple[str, str]  # (data set, split)

DEFAULT_THRESHOLD = 0.99
_MODES = ("private", "public")
_MATCH_SCHEMA = pa.schema(
    [(name, pa.string()) for name in ("public", "public_split", "public_id", "dataset", "split", "private_id", "kind")]
    + [("score", pa.float64())]
)
_PUBLISH = (
    "Do not publish this file: how many records of a private set match the public one is itself a statistic of"
    " private records. What may be published is the rule: the mode, the threshold and the public set."
)


def match(
    public: Mapping[Place, Records], private: Mapping[Place, Records], threshold: float = DEFAULT_THRESHOLD
) -> pa.Table:
    """Every public row that is an exact or near copy of a private row.

    Args:
        public, private: (data set, split) -> its records; those without images match nothing.
        threshold: the correlation from which two images are near copies.

    Returns:
        A table (public, public_split, public_id, dataset, split, private_id, kind, score); kind is exact or near, and
        the score of an exact copy is 1.

    The default threshold was measured on the default study: 12,000 glyphs, 300 of them replaced by planted copies,
    against 1,797 digits of 8 x 8 pixels. Planted copies scored at least 0.998, other glyphs at most 0.988. At 0.99 all
    300 were found and nothing else was; at 0.985 also 9 digits (0.5 %) that resemble a glyph, at 0.98 23 (1.3 %).

    Raises:
        StudyError: the threshold is not in (0, 1].
    """
    if not 0 < threshold <= 1:
        raise StudyError(f"dedup: threshold is {threshold}; it must be above 0 and at most 1")
    rows: list[tuple] = []
    pairs = [(mine, theirs) for mine in public for theirs in private]
    for mine, theirs in progress(pairs, "comparing images"):
        left, right = public[mine], private[theirs]
        if left.images is None or right.images is None or not len(left) or not len(right):
            continue
        side = common_side(left.images.shape[1:], right.images.shape[1:])
        exact = set(exact_pairs(left.images, right.images, side))
        near = near_pairs(left.images, right.images, side, threshold)
        for first, second in sorted(exact | set(near)):
            found = ("exact", 1.0) if (first, second) in exact else ("near", near[first, second])
            rows.append((*mine, str(left.ids[first]), *theirs, str(right.ids[second]), *found))
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(_MATCH_SCHEMA)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, _MATCH_SCHEMA, strict=True)]
    return pa.table(arrays, schema=_MATCH_SCHEMA)


def resolve(
    matches: pa.Table, public: Mapping[Place, Records], private: Mapping[Place, Records], drop: str = "private"
) -> pa.Table:
    """The rows (dataset, split, id) that are kept, public ones first.

    Args:
        matches: what `match` returned for the same records.
        drop: the side of each match that goes, "private" or "public".

    Raises:
        StudyError: `drop` is neither.
    """
    if drop not in _MODES:
        raise StudyError(f"dedup: drop is {drop!r}; it must be private or public")
    matched = _matched(matches, drop)
    kept: dict[str, list[str]] = {"dataset": [], "split": [], "id": []}
    for side in (public, private):
        for (dataset, split), records in side.items():
            gone = matched.get((dataset, split), {})
            ids = [name for name in map(str, records.ids) if name not in gone]
            kept["dataset"] += [dataset] * len(ids)
            kept["split"] += [split] * len(ids)
            kept["id"] += ids
    return pa.table(kept, schema=pa.schema([(name, pa.string()) for name in kept]))


def deduplicate(
    public: Mapping[Place, str | os.PathLike],
    private: Mapping[Place, str | os.PathLike],
    *,
    matches_path: str | os.PathLike,
    kept_path: str | os.PathLike,
    report_path: str | os.PathLike,
    drop: str = "private",
    threshold: float = DEFAULT_THRESHOLD,
) -> None:
    """Match the splits of one public set with those of private sets, and write matches, kept rows and a report.

    Args:
        public, private: (data set, split) -> its folder of image shards.

    Matches and kept rows name private records: those files are readable by their owner alone.

    Raises:
        StudyError: a folder is damaged, or an option is out of range.
    """
    public_records = {place: shards.load(folder) for place, folder in public.items()}
    private_records = {place: shards.load(folder) for place, folder in private.items()}
    matches = match(public_records, private_records, threshold)
    kept = resolve(matches, public_records, private_records, drop)
    write_table(matches_path, matches, private=True)
    write_table(kept_path, kept, private=True)
    write_json(report_path, _report(matches, public_records, private_records, drop, threshold))


def _report(matches: pa.Table, public: Mapping, private: Mapping, drop: str, threshold: float) -> dict:
    sets = []
    for side, places in (("public", public), ("private", private)):
        matched = _matched(matches, side)
        for (dataset, split), records in places.items():
            kinds = list(matched.get((dataset, split), {}).values())
            sets.append(
                {
                    "side": side,
                    "dataset": dataset,
                    "split": split,
                    "rows": len(records),
                    "compared": records.images is not None,
                    "exact": kinds.count("exact"),
                    "near": kinds.count("near"),
                    "dropped": len(kinds) if side == drop else 0,
                }
            )
    return {"drop": drop, "threshold": threshold, "sets": sets, "publish": _PUBLISH}


def _matched(matches: pa.Table, side: str) -> dict[Place, dict[str, str]]:
    """(data set, split) -> id -> "exact" if the row has an exact copy on the other side, else "near"."""
    names = ("dataset", "split", "private_id") if side == "private" else ("public", "public_split", "public_id")
    found: dict[Place, dict[str, str]] = {}
    columns = (matches.column(name).to_pylist() for name in (*names, "kind"))
    for dataset, split, name, kind in zip(*columns, strict=True):
        kinds = found.setdefault((dataset, split), {})
        if kinds.get(name) != "exact":
            kinds[name] = kind
    return found
