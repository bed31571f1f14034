"""The file of a cell's test scores: a row per seed and test record, so that new metrics need no model.

The file holds labels and groups of the test records; where these are private, so is it.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dpstudy.core.columns import numbers, strings, values_of
from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_table

if TYPE_CHECKING:
    from dpstudy.features.shards import FeatureTable

_GROUP = "group_"
_COLUMNS = ("seed", "id", "scores")


@dataclass(frozen=True)
class SeedScores:
    """One seed's scores of n test records in m classes.

    Attributes:
        ids: (n,) strings, the records' names.
        scores: (n, m) as the model gave them; the larger, the likelier.
        labels: (n,) int32 class indices, or (n, m) int8 of 0 and 1.
        subjects: (n,) strings, or None.
        groups: name -> (n,) strings.
        classes: names, in label order.
        origin: a hash of what made the model.
    """

    seed: int
    ids: np.ndarray
    scores: np.ndarray
    labels: np.ndarray
    subjects: np.ndarray | None
    groups: dict[str, np.ndarray]
    classes: tuple[str, ...]
    origin: str


def score_table(
    test: "FeatureTable",
    scores: Mapping[int, np.ndarray],
    classes: Sequence[str],
    origin: str,
    cell: Mapping | None = None,
):
    """The pyarrow Table of each seed's test scores; `write_table` writes it, readable by its owner alone.

    Args:
        test: the split that was scored; names of its records are there for who looks a record up.
        scores: seed -> (n, m) of its rows.
        classes: the m names.
        origin: a hash of what made the models.
        cell: names of the cell that they are of, and its "seeds".
    """
    import pyarrow as pa

    seeds, n, given = list(scores), len(test), np.concatenate([np.asarray(rows) for rows in scores.values()])
    known = {"id": strings(test.ids)}
    if test.labels.ndim == 2:
        known["labels"] = _lists(test.labels, np.int8)
    else:
        known["label"] = numbers(test.labels, np.int32)
    if test.subjects is not None:
        known["subject"] = strings(test.subjects)
    known |= {_GROUP + name: strings(values) for name, values in test.groups.items()}
    of_each = {name: pa.chunked_array([column] * len(seeds)) for name, column in known.items()}
    columns = {"seed": numbers(np.repeat(np.array(seeds, np.int64), n), np.int64), "id": of_each.pop("id")}
    columns |= {"scores": _lists(given, given.dtype.type)} | of_each
    metadata = {"classes": json.dumps(list(classes)), "origin": origin} | ({"cell": json.dumps(cell)} if cell else {})
    return pa.table(columns).replace_schema_metadata(metadata)


def cell_of_scores(path: str | os.PathLike) -> dict | None:
    """The cell and seeds named in a file of scores; None where there is no file or it names none.

    Raises:
        StudyError: the file is damaged.
    """
    import pyarrow as pa
    import pyarrow.parquet as parquet

    try:
        cell = (parquet.read_schema(path).metadata or {}).get(b"cell")
        return None if cell is None else json.loads(cell)
    except FileNotFoundError:
        return None
    except (pa.ArrowException, OSError, ValueError, RecursionError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise StudyError(f"{path}: damaged parquet file ({reason}); delete it and run the study again") from None


def read_scores(path: str | os.PathLike) -> Iterator[SeedScores]:
    """The scores in a file, seed by seed.

    Raises:
        StudyError: the file is missing, damaged, lacks a column, or does not say of what models it is.
    """
    table = read_table(path)
    names = table.column_names
    label = "labels" if "labels" in names else "label"
    if missing := [name for name in (*_COLUMNS, label) if name not in names]:
        raise StudyError(f"{path}: no column {missing[0]!r}; restore it, or delete it and run the study again")
    metadata = table.schema.metadata or {}
    if not {b"classes", b"origin"} <= metadata.keys():
        raise StudyError(f"{path}: does not say of what models it is; restore it, or delete it and run the study again")
    classes, origin = tuple(json.loads(metadata[b"classes"])), metadata[b"origin"].decode()
    seeds = np.array(table["seed"].to_pylist(), np.int64)
    starts = [0, *(np.flatnonzero(np.diff(seeds)) + 1).tolist(), len(seeds)] if len(seeds) else []
    for start, end in zip(starts, starts[1:], strict=False):
        part = table.slice(start, end - start)
        yield SeedScores(
            seed=int(seeds[start]),
            ids=_texts(part, "id"),
            scores=_matrix(part, "scores", len(classes)),
            labels=_matrix(part, label, len(classes)) if label == "labels" else values_of(part[label].combine_chunks()),
            subjects=_texts(part, "subject") if "subject" in names else None,
            groups={name.removeprefix(_GROUP): _texts(part, name) for name in names if name.startswith(_GROUP)},
            classes=classes,
            origin=origin,
        )


def scored_records(given: SeedScores) -> dict:
    """The test records that were scored, as in metrics.json: their number, and a hash of their sorted names."""
    return {"records": len(given.ids), "names": hashlib.sha256("\0".join(sorted(given.ids)).encode()).hexdigest()}


def _lists(values: np.ndarray, dtype: type):
    import pyarrow as pa

    return pa.FixedSizeListArray.from_arrays(numbers(values.reshape(-1), dtype), values.shape[1])


def _matrix(table, name: str, m: int) -> np.ndarray:
    return values_of(table[name].combine_chunks().flatten()).reshape(len(table), m)


def _texts(table, name: str) -> np.ndarray:
    return np.array(table[name].to_pylist(), dtype=object)
