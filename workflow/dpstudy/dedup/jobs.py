"""The jobs of de-duplication by alignment (`method: aligned`).

Each public shard is searched for candidates, which costs the same for every public image; the images of each private
shard are then laid on their nearest candidates, which costs the same however many public images there are; one job
joins it all.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import pyarrow as pa

from dpstudy.core.files import atomic, read_json, read_table, read_tensors, write_table, write_tensors
from dpstudy.core.progress import progress
from dpstudy.data import shards
from dpstudy.data.records import concatenate
from dpstudy.dedup.basis import read_basis
from dpstudy.dedup.candidates import Candidates, Index, best
from dpstudy.dedup.compare import Matches, equal, judge
from dpstudy.dedup.describe import Description
from dpstudy.dedup.outcome import Place, Rows, match_table, report, resolve, write
from dpstudy.dedup.rule import Rule

_PICTURED = 200  # near matches of a job that are kept to be looked at, those least alike first


@dataclass(frozen=True)
class Shard:
    """One shard of images and the file of its descriptions.

    Attributes:
        folder: results/data/{source}/{split}.
        number: of the shard.
        description: the file that describes it.
    """

    folder: str
    number: int
    description: str

    def ids(self) -> list[str]:
        """The ids of its rows, in order."""
        return shards.ids_of(self.folder, {"shards": [self._entry()]})

    def dataset(self) -> str:
        """The data set's name."""
        return shards.read_manifest(self.folder)["dataset"]

    def rows(self) -> int:
        """The number of its rows."""
        return self._entry()["rows"]

    def _entry(self) -> dict:
        return shards.read_manifest(self.folder)["shards"][self.number]


def search_shard(
    public: Shard, private: Sequence[tuple[str, Shard]], basis: str | os.PathLike, path: str | os.PathLike
) -> None:
    """Find the candidates and exact copies in one public shard of each private shard, and write them.

    Args:
        private: (a name, shard) of every shard of every split of the private sets.
        basis: what `fit_basis` kept of the public set.

    Raises:
        StudyError: a file is missing or damaged.
    """
    theirs = Description.read(public.description)
    index, tensors = Index(theirs, read_basis(basis)), {"rows": np.array([len(theirs)])}
    for name, part in progress(private, "searching", total=len(private)):
        mine = Description.read(part.description)
        near = index.near(mine)
        tensors[f"{name}/rows"] = np.stack([near.public, near.private]).astype(np.int32)
        tensors[f"{name}/nearness"] = near.nearness.astype(np.float16)
        tensors[f"{name}/equal"] = np.array(equal(theirs, mine), np.int32).reshape(-1, 2)
    write_tensors(path, tensors, private=True)


def align_shard(
    public: Sequence[tuple[str, Shard]],
    searched: Sequence[str | os.PathLike],
    place: Place,
    name: str,
    private: Shard,
    basis: str | os.PathLike,
    path: str | os.PathLike,
    rule: Mapping | None = None,
) -> None:
    """Find the public copies of one private shard's images, and write the matches with thumbnails.

    Args:
        public: (split, shard) of every public shard.
        searched: what `search_shard` wrote for each of them.
        place: (data set, split) of the private shard.
        name: what `search_shard` was told that the private shard is called.
        rule: thresholds other than the defaults (compare.Rule).

    Raises:
        StudyError: a file is missing or damaged, or a threshold is out of range.
    """
    thresholds, mine = Rule(**(rule or {})), Description.read(private.description)
    candidates, same = _candidates(searched, name)
    offsets = np.cumsum([0] + [shard.rows() for _, shard in public])
    wanted = np.unique(np.concatenate([candidates.public, same[:, 0]]))
    theirs, names = [], []
    for (split, shard), first, end in progress(
        zip(public, offsets, offsets[1:], strict=False), f"reading {'/'.join(place)}", total=len(public)
    ):
        rows = wanted[(wanted >= first) & (wanted < end)] - first
        if len(rows):
            theirs.append(Description.read(shard.description).take(rows))
            ids = shard.ids()
            names += [(shard.dataset(), split, ids[row]) for row in rows]
    part = match_table([]).append_column("picture", pa.array([], pa.binary()))
    if theirs:
        gathered = concatenate(theirs)
        near = Candidates(np.searchsorted(wanted, candidates.public), candidates.private, candidates.nearness)
        pairs = [(int(np.searchsorted(wanted, row)), int(column)) for row, column in same]
        judged = judge(gathered, mine, near, pairs, read_basis(basis), thresholds)
        part = _matched(judged, names, place, private.ids(), gathered, mine)
    write_table(path, part, private=True)


def _candidates(searched: Sequence[str | os.PathLike], name: str) -> tuple[Candidates, np.ndarray]:
    """Of all public shards, rows counted through them: candidates, and pairs that are equal."""
    parts, same, first = [], [], 0
    for path in searched:
        tensors = read_tensors(path)
        rows, near = tensors[f"{name}/rows"].astype(np.int64), tensors[f"{name}/nearness"]
        parts.append((rows[0] + first, rows[1], near.astype(np.float32)))
        same.append(tensors[f"{name}/equal"].astype(np.int64) + (first, 0))
        first += int(tensors["rows"][0])
    return best(Candidates(*(np.concatenate(column) for column in zip(*parts, strict=True)))), np.concatenate(same)


def _matched(
    found: Matches,
    names: list[tuple[str, str, str]],
    place: Place,
    ids: list[str],
    public: Description,
    private: Description,
) -> pa.Table:
    kinds = np.where(found.exact, "exact", "near").tolist()
    pairs = zip(found.public.tolist(), found.private.tolist(), kinds, found.score.tolist(), strict=True)
    rows = [(*names[first], *place, ids[second], kind, score) for first, second, kind, score in pairs]
    pictures = [b""] * len(rows)
    near = np.flatnonzero(~found.exact)
    for row in near[np.argsort(found.score[near], kind="stable")][:_PICTURED]:
        sides = [_colour(public.thumbnails[found.public[row]]), _colour(private.thumbnails[found.private[row]])]
        pictures[row] = np.concatenate(sides, axis=1).tobytes()
    return match_table(rows).append_column("picture", pa.array(pictures, pa.binary()))


def _colour(thumbnail: np.ndarray) -> np.ndarray:
    return thumbnail.repeat(3, axis=2) if thumbnail.shape[2] == 1 else thumbnail


def merge(
    parts: Iterable[str | os.PathLike],
    public: Mapping[Place, str | os.PathLike],
    private: Mapping[Place, str | os.PathLike],
    outputs: Mapping[str, str | os.PathLike],
    *,
    drop: str = "private",
    rule: Mapping | None = None,
    calibrations: Iterable[str | os.PathLike] = (),
    drawn: bool = False,
) -> None:
    """Merge the matches of all shards, and write matches, kept rows, a report and a picture.

    Args:
        parts: what `align_shard` wrote.
        public, private: (data set, split) -> its folder of image shards.
        outputs: the files: matches, kept, report, picture.
        calibrations: what `calibrate` wrote for the private sets.
        drawn: the public set is drawn by a program that saw no image, and was not compared.

    Matches, kept rows and the picture show private records: those files are readable by their owner alone.

    Raises:
        StudyError: a file is missing or damaged, or an option is out of range.
    """
    theirs, mine = ({place: _rows(folder, not drawn) for place, folder in side.items()} for side in (public, private))
    tables = [read_table(part) for part in parts]
    pairs = pa.concat_tables(tables) if tables else match_table([]).append_column("picture", pa.array([], pa.binary()))
    matches = pairs.drop_columns(["picture"])
    _draw(pairs, outputs["picture"])
    how = {"method": "aligned", **asdict(Rule(**(rule or {}))), "drawn": drawn}
    content = report(matches, theirs, mine, drop, how) | {"calibration": [read_json(path) for path in calibrations]}
    write(outputs, matches, resolve(matches, theirs, mine, drop), content)


def _rows(folder: str | os.PathLike, compared: bool) -> Rows:
    return Rows(shards.ids_of(folder, shards.read_manifest(folder)), compared)


def _draw(found: pa.Table, path: str | os.PathLike) -> None:
    from dpstudy.dedup.picture import draw_pairs

    rows = [row for row in found.select(["public_id", "private_id", "score", "picture"]).to_pylist() if row["picture"]]
    rows.sort(key=lambda row: (row["score"], row["public_id"], row["private_id"]))
    with atomic(path, private=True) as temporary:
        draw_pairs([(r["public_id"], r["private_id"], r["score"], r["picture"]) for r in rows], temporary)
