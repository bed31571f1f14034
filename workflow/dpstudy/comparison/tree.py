"""Reading results folders, from this machine or copied from another; neither config nor .snakemake is needed."""

import os
from dataclasses import dataclass
from pathlib import Path

from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json
from dpstudy.evaluation.summary import AXES, cell_name

_DOCUMENTS = ("metrics.json", "ledger.json")
# What a comparison reads of metrics.json and ledger.json.
_METRICS: dict[str, type] = {"seeds": list, "hyperparameters": dict, "made_by": dict}
_LEDGER: dict[str, type] = {"events": list, "not_accounted": list}


@dataclass(frozen=True)
class Cell:
    """The documents of one cell, and the path of its metrics.json."""

    name: str
    path: str
    metrics: dict
    ledger: dict


def cells_of(tree: str | os.PathLike) -> list[str]:
    """The sorted names of a results folder's cells; empty folders, of cells not made yet, are skipped.

    Raises:
        StudyError: there is no such tree, or a cell lacks a document.
    """
    tree = Path(tree)
    if not tree.is_dir():
        raise StudyError(f"{tree}: no such folder; name the results folder of a study")
    if not (tree / "cells").is_dir():
        hint = f", such as {tree / 'results'}" if (tree / "results" / "cells").is_dir() else ""
        raise StudyError(f"{tree}: has no folder cells; name the results folder of a study{hint}")
    names = []
    for folder in sorted((tree / "cells").glob("/".join("*" * len(AXES)))):
        files = {name for name in os.listdir(folder) if not name.startswith(".")} if folder.is_dir() else set()
        if files:
            missing = next((name for name in _DOCUMENTS if name not in files), None)
            if missing:
                raise StudyError(
                    f"{folder}: half-written, it has no {missing}; finish the study there and compare again"
                )
            names.append(folder.relative_to(tree / "cells").as_posix())
    return names


def read_cell(tree: str | os.PathLike, name: str) -> Cell:
    """The cell with this name.

    Raises:
        StudyError: a document is missing, damaged, or is not of this cell.
    """
    folder = Path(tree) / "cells" / name
    metrics, ledger = (read_json(folder / document) for document in _DOCUMENTS)
    _check(folder / "metrics.json", metrics, _METRICS)
    _check(folder / "ledger.json", ledger, _LEDGER)
    if not metrics["seeds"] or not all(map(_is_seed, metrics["seeds"])):
        raise StudyError(f"{folder}/metrics.json: damaged, 'seeds' lists no seeds; delete it and run that study again")
    cell = cell_name(*(str(metrics.get(axis)) for axis in AXES))
    if cell != name:
        raise StudyError(f"{folder}/metrics.json: is of the cell {cell}; delete the folder and run that study again")
    return Cell(name, f"{folder}/metrics.json", metrics, ledger)


def sheets_of(tree: str | os.PathLike) -> list[str]:
    """The sorted paths, relative to the results folder, of its tables' and figures' CSV files."""
    tree = Path(tree)
    return sorted(
        path.relative_to(tree).as_posix() for room in ("tables", "figures") for path in tree.glob(f"{room}/*.csv")
    )


def _check(path: Path, content: object, needed: dict[str, type]) -> None:
    for key, kind in needed.items():
        if not isinstance(content, dict) or not isinstance(content.get(key), kind):
            raise StudyError(f"{path}: damaged, it has no {key!r}; delete it and run that study again")


def _is_seed(row: object) -> bool:
    if not isinstance(row, dict) or "seed" not in row:
        return False
    groups = row.get("groups", {})
    return isinstance(groups, dict) and all(isinstance(entry, dict) for entry in groups.values())
