"""Checks that a cell's files belong together, by the names and SHA-256 checksums that they state of each other.

    scores.parquet  names its cell and epsilon, and its seeds
    ledger.json     names its cell and epsilon, its model's seed, and the SHA-256 of the model
    run.json        names its cell and epsilon, its seeds, and the SHA-256 of model, scores, ledger and curve
    metrics.json    as run.json, and the SHA-256 of run.json
    the book        has the SHA-256 of all that a training with secure noise wrote

What an earlier version wrote names less: what cannot be compared is not. No ledger has a hash of scores: ledgers are
published, and scores are computed from test records, which may be private.
"""

import contextlib
import functools
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from dpstudy.config.cells import Cell
from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json, sha256
from dpstudy.evaluation.score_file import cell_of_scores
from dpstudy.privacy.paid_store import PaidStore
from dpstudy.privacy.spending import BOOK, Spending
from dpstudy.privacy.spent_lines import is_begun
from dpstudy.schema.methods import method_names, method_schema

MODEL, SCORES, LEDGER, CURVE = "model.safetensors", "scores.parquet", "ledger.json", "curve.parquet"
RUN, METRICS = "run.json", "metrics.json"
AXES = ("dataset", "features", "entry", "epsilon")
_SPENT = "the book of what was spent"


def name_of_cell(cell: Cell, **more: object) -> dict:
    """The keys by which a file names its cell."""
    return asdict(cell) | more


def hashes(paths: Mapping[str, str], *keys: str) -> dict[str, str]:
    """File name -> SHA-256 of the files of those keys that were written."""
    return {os.path.basename(paths[key]): sha256(paths[key]) for key in keys if key in paths}


def releases_of(ledger: Mapping) -> dict:
    """A ledger's releases: the ledger without its cell, its file checksums and what is derived from the rest."""
    return {key: value for key, value in ledger.items() if key not in ("cell", "files", "trade_off")}


class PaidHashes:
    """Checksums of every training in the budget log of secure noise; read once.

    Trainings of this folder that only a log beside the data has, as after this one was lost, are among them: the next
    run writes them down here (`PaidModels.unwritten`).

    Raises:
        StudyError: the book is damaged.
    """

    def __init__(self, book: Spending):
        self._cells: dict[str, dict[int, list[dict]]] = {}
        store = PaidStore(book.path.with_name("paid"))
        for line in (*book.entries(), *filter(store.has, book.missing())):
            if is_begun(line):  # it wrote no more than a checkpoint
                continue
            of_seed = self._cells.setdefault(line["cell"], {}).setdefault(line["seed"], [])
            of_seed.append(line.get("files", {}))  # of an earlier version: none

    def of(self, cell: str) -> dict[int, list[dict]]:
        """Seed -> the checksums by file name of each training of a cell; empty for trainings of earlier versions."""
        return self._cells.get(cell, {})

    def kept(self, cell: str) -> bool | None:
        """Whether the store of paid models has a training of the cell; None where none was ever paid for."""
        trainings = [files for of_seed in self.of(cell).values() for files in of_seed]
        return any(trainings) if trainings else None


@dataclass(frozen=True)
class Binding:
    """Checks whether the files of each cell belong together.

    Args:
        paid: None where nobody keeps a book.
        results: the folder.
    """

    paid: PaidHashes | None = None
    results: str = "results"

    def faults(self, cell: str, metrics: bool = True) -> list[str]:
        """The reasons why a cell's files do not belong together, a sentence each; empty where none is found.

        Args:
            cell: its path.
            metrics: metrics.json is looked at too; not where it is still to be made of run.json.
        """
        folder, runs = Path(self.results, "cells", cell), Path(self.results, "runs", cell)
        run = _read(folder / RUN)
        gathered = _has_seed_jobs(run, runs)
        faults = self._of_training(cell, folder, None, gathered)
        if metrics and (fault := self._of_metrics(cell, folder, {} if RUN in faults else run)):
            faults[METRICS] = fault
        if RUN in faults:  # the cell's seeds are not known: take those that are present
            names = (path.parent.name.removeprefix("seed=") for path in runs.glob(f"seed=*/{RUN}"))
            run = {"seeds": [{"seed": int(name)} for name in sorted(names) if name.isdecimal()]}
        for seed in _seeds(run) if gathered else ():
            name = f"seed={seed}/{SCORES}"
            of_seed = self._of_training(cell, runs / f"seed={seed}", seed)
            if SCORES not in of_seed and _differs(runs / name, _files(run).get(name)):
                of_seed[SCORES] = self._other_content(cell, runs / name, f"cells/{cell}/{RUN}")
            faults |= {f"seed={seed}/{file}": fault for file, fault in of_seed.items()}
        return list(faults.values())

    def faults_of_seeds(self, cell: str, seeds: Sequence[int]) -> list[str]:
        """The same for trainings of single seeds that are not gathered into a cell yet."""
        folders = {seed: Path(self.results, "runs", cell, f"seed={seed}") for seed in seeds}
        return [fault for seed, folder in folders.items() for fault in self._of_training(cell, folder, seed).values()]

    def _of_training(self, cell: str, folder: Path, seed: int | None, gathered: bool = False) -> dict[str, str]:
        """File -> what is wrong with it, of a folder that a training wrote, or that was gathered of several.

        Args:
            seed: the only one that it may be of; None: those that run.json has.
        """
        run, ledger, faults = _read(folder / RUN), _read(folder / LEDGER), {}
        seeds = _seeds(run) if seed is None else [seed]
        if gathered and SCORES in _files(run):  # a gathered cell has none of its own
            one = _spelled(cell, ", ".join(map(str, seeds)))
            faults[RUN] = self._sentence(cell, folder / RUN, f"is of {one} alone", f"of {cell} with all seeds")
        for file, content in {
            RUN: run | {"seeds": _seeds(run)},
            LEDGER: ledger.get("cell"),
            SCORES: cell_of_scores(folder / SCORES),
        }.items():
            if isinstance(content, Mapping) and (other := _another(cell, [] if RUN in faults else seeds, content)):
                faults[file] = self._sentence(cell, folder / file, f"is of {other}", f"of {_spelled(cell, seed)}")
        expected = {} if LEDGER in faults else {name: (value, LEDGER) for name, value in _files(ledger).items()}
        if RUN not in faults:
            expected |= {name: (value, RUN) for name, value in _files(run).items() if "/" not in name}
        for file, (value, witness) in expected.items():
            if file not in faults and _differs(folder / file, value):
                faults[file] = self._other_content(cell, folder / file, witness)
        secure = ledger.get("noise") == "secure" and ledger.get("events")
        if self.paid and secure and not faults and seeds and (unpaid := self._unpaid(cell, folder, seeds[0], gathered)):
            faults[unpaid[0]] = unpaid[1]
        return faults

    def _unpaid(self, cell: str, folder: Path, seed: int, gathered: bool) -> tuple[str, str] | None:
        """The first file of a training with secure noise that the book does not have, and what is wrong with it."""
        assert self.paid
        trainings = self.paid.of(cell).get(seed, [])
        if not trainings and "cell" in _read(folder / LEDGER):
            fault = f"{folder / LEDGER}: {_SPENT} has no training of {_spelled(cell, seed)}"
            remedy = f"restore {self.results}/privacy/spent.jsonl, where each is written down"
            return LEDGER, f"{fault}; {remedy}, or delete {folder}: with its copy in privacy/paid it is taken as it is"
        files, wrong = (MODEL, LEDGER) if gathered else (MODEL, LEDGER, SCORES, CURVE, RUN), None
        for known in trainings:
            wrong = next((file for file in files if _differs(folder / file, known.get(file))), None)
            if wrong is None:
                return None
        return (wrong, self._other_content(cell, folder / wrong, _SPENT)) if wrong else None

    def _of_metrics(self, cell: str, folder: Path, run: Mapping) -> str | None:
        path = folder / METRICS
        metrics = _read(path)
        if other := _another(cell, _seeds(run), metrics | {"seeds": _seeds(metrics)}):
            return self._sentence(cell, path, f"is of {other}", f"of {cell}")
        if run and _differs(folder / RUN, _files(metrics).get(RUN)):
            return self._sentence(cell, path, f"was made of another {RUN}", f"made of {folder / RUN}")
        return None

    def _other_content(self, cell: str, path: Path, witness: str) -> str:
        """Of a file whose SHA-256 is another than the one that a witness has."""
        owner = self._owner(path)
        what = f"is that of {owner}" if owner else "is not what the training wrote"
        return self._sentence(cell, path, what, f"that of {cell}, by its SHA-256 in {witness}")

    def _owner(self, path: Path) -> str:
        """Whose file it is, by the SHA-256 in the run.json of others; "" where none has it."""
        value, results = sha256(path), Path(self.results)
        for pattern in ("cells/*/*/*/eps=*", "runs/*/*/*/eps=*/seed=*"):
            for run in sorted(results.glob(f"{pattern}/{RUN}")):
                with contextlib.suppress(StudyError):  # a damaged file is reported where it is read
                    if run.parent != path.parent and _files(_read(run)).get(path.name) == value:
                        return "/".join(run.parent.relative_to(results).parts[1:])
        return ""

    def _sentence(self, cell: str, path: Path, present: str, wanted: str) -> str:
        kept, whole = self.paid.kept(cell) if self.paid else None, path if path.name == METRICS else path.parent
        remedy = f"delete {whole} and run the study again"
        if kept:
            remedy += f": what was paid for is taken from {self.results}/privacy/paid, and no noise is drawn"
        elif kept is False and path.name != METRICS:
            remedy = "restore it as the training left it: secure noise has paid for it, and no copy was kept"
        return f"{path}: {present}, and should be {wanted}; {remedy}"


def own_binding(shared: Sequence[str] = ()) -> Binding:
    """That of the study in this folder, by its budget log.

    Args:
        shared: budget logs beside the data, which may have lines that this one has lost.

    Raises:
        StudyError: a log is damaged.
    """
    return Binding(PaidHashes(Spending(BOOK, shared=shared)))


def check_cells(cells: Iterable[str], binding: Binding, metrics: bool = True) -> None:
    """Refuse cells whose files do not belong together.

    Args:
        cells: their paths.
        metrics: as of `Binding.faults`.

    Raises:
        StudyError: names the first such file, and how many more there are.
    """
    refuse([fault for cell in dict.fromkeys(cells) for fault in binding.faults(cell, metrics)])


def refuse(faults: Sequence[str]) -> None:
    """Raise the first fault, if there is any, with the number of further ones.

    Raises:
        StudyError: there is one.
    """
    if faults:
        raise StudyError(faults[0] + (f" ({len(faults) - 1} more files likewise)" if len(faults) > 1 else ""))


def _read(path: Path) -> dict:
    """A document; empty where there is none.

    Raises:
        StudyError: it is damaged.
    """
    if not path.exists():
        return {}
    content = read_json(path)
    if not isinstance(content, dict):
        raise StudyError(f"{path}: damaged, it is no mapping; delete it and run the study again")
    return content


def _has_seed_jobs(run: Mapping, runs: Path) -> bool:
    """Whether each seed of a cell is trained in a folder of its own, of which the cell is gathered."""
    known = _trains_seeds_apart(str(run.get("method")))
    return runs.is_dir() if known is None else known


@functools.cache
def _trains_seeds_apart(method: str) -> bool | None:
    """As its schema says; None: it is of a package that is not here, or run.json is damaged."""
    return bool(method_schema(method).get("x-per-seed")) if method in method_names() else None


def _files(document: Mapping) -> dict:
    files = document.get("files", {})
    return files if isinstance(files, dict) else {}


def _seeds(document: Mapping) -> list:
    rows = document.get("seeds")
    return [row.get("seed") for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _spelled(cell: str, seed: object = None) -> str:
    return cell if seed is None else f"{cell}, seed {seed}"


def _another(cell: str, seeds: Sequence[int], told: Mapping) -> str:
    """The cell and seeds that a file names, where they are others; "": they are not, or it names none."""
    if any(axis in told and told[axis] != name for axis, name in zip(AXES, _parts(cell), strict=True)):
        return "{}/{}/{}/eps={}".format(*(told.get(axis) for axis in AXES))
    if seeds and told.get("seeds") and told["seeds"] != list(seeds):
        return _spelled(cell, str(told["seeds"]).strip("[]"))
    if seeds and "seed" in told and told["seed"] != seeds[0]:
        return _spelled(cell, told["seed"])
    return ""


def _parts(cell: str) -> list[str]:
    *names, epsilon = cell.split("/")
    return [*names, epsilon.removeprefix("eps=")]


def _differs(path: Path, value: str | None) -> bool:
    if value is None or not path.exists():
        return False
    try:
        return sha256(path) != value
    except StudyError:  # scores that the study does not keep were deleted meanwhile
        return False
