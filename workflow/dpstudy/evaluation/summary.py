"""The summary of a study: one line per cell, seed, metric and group, gathered from each cell's metrics.json."""

import functools
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json, read_table, sha256, write_table
from dpstudy.evaluation.csv_file import write_csv
from dpstudy.evaluation.metrics import ordered

if TYPE_CHECKING:
    import pyarrow as pa

# no group: the whole split; no value: the test records give the metric none
COLUMNS = "dataset features entry method epsilon seed split metric group value".split()
_TYPES = dict.fromkeys(COLUMNS, "string") | {"seed": "int64", "value": "double"}
AXES = ("dataset", "features", "entry", "epsilon")  # what a cell is known by, and the folders that lead to it


def cell_name(dataset: str, features: str, entry: str, epsilon: str) -> str:
    """The name of a cell, which is its path below results/cells.

    >>> cell_name("mnist", "pixels", "dp-sgd", "2")
    'mnist/pixels/dp-sgd/eps=2'
    """
    return f"{dataset}/{features}/{entry}/eps={epsilon}"


Vouches = Callable[[dict, str, str | None, str], bool]


def check_made_by(metrics: dict, expected: dict, vouches: Vouches | None = None) -> None:
    """Refuse a cell that was made with another config, library version or data.

    Args:
        metrics: the content of a metrics.json.
        expected: the hashes that the cell must bear, such as {"config": ..., "library": ...}, and under "data" the file
            that vouches for each thing that it read, by name.
        vouches: says of a hash that differs, from the metrics, its name and both values, that the cell may stand all
            the same (cell/paid_models.py); None: none may.

    Raises:
        StudyError: a hash is missing or differs, or a file is missing.
    """
    made_by, data = metrics.get("made_by", {}), expected.get("data", {})
    present = {f"data ({name})": _hash_of_file(path) for name, path in data.items()}
    recorded = made_by | {f"data ({name})": value for name, value in made_by.get("data", {}).items()}
    for key, value in ({key: value for key, value in expected.items() if key != "data"} | present).items():
        if recorded.get(key) != value and not (vouches and vouches(metrics, key, recorded.get(key), value)):
            name = cell_name(*(str(metrics.get(axis)) for axis in AXES))
            raise StudyError(
                f"cell {name}: stale, its {key} is not the present one; "
                f"delete results/cells/{name} and run snakemake again"
            )


@functools.cache
def _hash_of_file(path: str) -> str:
    """As a cell notes it; a thousand cells read the same few files."""
    return sha256(path)[:16]


def summarise(cells: list[dict], vouches: Vouches | None = None) -> "pa.Table":
    """A table with a line per cell, seed, metric and group; cells keep the given order, the config's.

    Args:
        cells: each {"dataset", "features", "entry", "epsilon", "metrics": path of its metrics.json} and optionally
            "expected", what `check_made_by` compares with.
        vouches: as of `check_made_by`.

    Raises:
        StudyError: a metrics.json is missing, damaged, stale, or belongs to another cell; a cell is listed twice.
    """
    import pyarrow as pa  # late: styles of tables are asked about a study by a process that needs none of it

    rows, seen = [], set()
    for cell in cells:
        name = cell_name(*(cell[axis] for axis in AXES))
        if name in seen:
            raise StudyError(f"cell {name}: listed twice; each combination may stand once in `cells`")
        seen.add(name)
        metrics = read_json(cell["metrics"])
        for axis in AXES:
            if metrics.get(axis) != cell[axis]:
                raise StudyError(
                    f"{cell['metrics']}: its {axis} is {metrics.get(axis)!r}, not {cell[axis]!r}; "
                    "delete the file and run snakemake again"
                )
        check_made_by(metrics, cell.get("expected", {}), vouches)
        rows.extend(_rows(metrics))
    return pa.Table.from_pylist(
        rows, schema=pa.schema([(name, pa.type_for_alias(kind)) for name, kind in _TYPES.items()])
    )


def write_summary(
    cells: list[dict], csv_path: str | os.PathLike, parquet_path: str | os.PathLike, vouches: Vouches | None = None
) -> None:
    """Write the summary of `cells` (see `summarise`) as CSV and as parquet."""
    table = summarise(cells, vouches)
    write_csv(csv_path, table.column_names, zip(*(column.to_pylist() for column in table.columns), strict=True))
    write_table(parquet_path, table)


def read_summary(path: str | os.PathLike) -> list[dict]:
    """The rows of a summary in a parquet file.

    Raises:
        StudyError: the file is missing, damaged, or has other columns.
    """
    table = read_table(path)
    if (columns := table.column_names) != COLUMNS:
        raise StudyError(f"{path}: its columns are {columns}, not {COLUMNS}; delete it and run snakemake again")
    try:
        rows = [row | {"seed": int(row["seed"])} for row in table.to_pylist()]
        return [row | ({} if row["value"] is None else {"value": float(row["value"])}) for row in rows]
    except (TypeError, ValueError) as error:
        raise StudyError(f"{path}: damaged ({error}); delete it and run snakemake again") from None


def values_by_cell(summary: list[dict], metric: str, split: str = "test") -> dict[str, list[float]]:
    """Cell name -> the metric's value on the whole split for each seed, in the summary's order; none where undefined.

    Raises:
        StudyError: no cell has this metric.
    """
    values: dict[str, list[float]] = {}
    for row in summary:
        if (row["metric"], row["split"], row["group"]) == (metric, split, ""):
            of_cell = values.setdefault(cell_name(*(row[axis] for axis in AXES)), [])
            of_cell += [] if row["value"] is None else [row["value"]]
    if summary and not values:
        present = sorted({row["metric"] for row in summary if row["split"] == split})
        raise StudyError(f"metric {metric!r}: no cell has it on the {split} split; there are {', '.join(present)}")
    return values


def _rows(metrics: dict) -> list[dict]:
    cell = {key: metrics[key] for key in ("dataset", "features", "entry", "method", "epsilon")}
    rows: list[dict] = []
    for run in metrics["seeds"]:
        for group, values in {"": run, **run.get("groups", {})}.items():
            rows.extend(
                cell | {"seed": run["seed"], "split": run["split"], "metric": m, "group": group, "value": values[m]}
                for m in ordered(values)
            )
        where = cell | {"seed": run["seed"], "split": run["split"], "group": "", "value": None}
        rows.extend(where | {"metric": name} for name in metrics.get("undefined", ()))
    return rows
