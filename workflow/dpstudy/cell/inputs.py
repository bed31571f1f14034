"""The inputs of a cell: its public settings, the files it reads, and the learning problem that they define."""

import importlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from dpstudy.config.cells import Cell
from dpstudy.config.tuned import CALIBRATION, PUBLIC
from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_tensors, sha256
from dpstudy.data.weak_delta import check_delta
from dpstudy.features import images, shards
from dpstudy.features.batches import ShardBatches
from dpstudy.features.shards import FeatureTable
from dpstudy.methods.averaging import weights_by_name
from dpstudy.methods.problem import Problem
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.data_book import books_around
from dpstudy.privacy.noise import NoiseSource
from dpstudy.privacy.spending import Spending
from dpstudy.provenance.hashes import cell_fingerprint, library_hash, listed_code
from dpstudy.schema.methods import deciding


class UnreadableError(StudyError):
    """Training records cannot be read, whatever the hyper-parameters."""


@dataclass(frozen=True)
class CellRequest:
    """The public settings of one cell.

    Attributes:
        cell: which cell.
        options: the entry's hyper-parameters, overrides applied.
        dataset: reader, delta, unit and positives of the private data set; not_accounted, what was done to it outside
            the ledger, where there is anything.
        seeds: to train.
        noise: "seeded" or "secure".
        metrics: of a search, which maximises the first; a training judges no scores.
        not_accounted: what the study does outside the ledger, a sentence each.
        code: source files that the cell runs on.
        library: their hash when the study was laid out.
        checkpoint: where a single seed keeps its checkpoint, or None.
        on_training: tell how models do on their training records too, without noise.
        spent: where trainings with secure noise are written down, or None.
        shared: the books beside the data, in which it is written down too.
        beside: folders around and inside which others may lie, by now too (data_book.books_around).
        spend_again: a cell that stands there may be trained once more.
        ceiling: the most epsilon that all trainings on the same records may spend together, or None.
        records: whose they are, for that book (locations.records_of).
        folders: where they lie (locations.folders_of).
        persons: the column that tells persons apart, where these are protected.
        others: trainings on folders that are not found are about other records (Spending).
        origin: a hash of how the config makes what the cell reads.
    """

    cell: Cell
    options: dict
    dataset: dict
    seeds: Sequence[int]
    noise: str
    metrics: Sequence[str]
    not_accounted: Sequence[str]
    code: Sequence[str]
    library: str
    checkpoint: str | None = None
    on_training: bool = False
    spent: str | None = None
    shared: Sequence[str] = ()
    beside: Sequence[str] = ()
    spend_again: bool = False
    ceiling: str | None = None
    records: str = ""
    folders: Sequence[str] = ()
    persons: str = ""
    others: bool = False
    origin: str = ""

    @classmethod
    def of(cls, told: Mapping, code: str | Sequence[str], spending: SimpleNamespace | None = None) -> "CellRequest":
        """The request that a rule's parameters describe (plan.training).

        Args:
            told: the fields, another value of which makes stale what the job makes.
            code: the file that lists the job's code (provenance.hashes.list_code), or the files themselves.
            spending: other fields, and sentences of `not_accounted`; None where there are none.
        """
        untracked = {} if spending is None else dict(vars(spending))
        sentences = [*told["not_accounted"], *untracked.pop("not_accounted", [])]
        files = listed_code(code) if isinstance(code, str) else list(code)
        fields = {**told, **untracked, "cell": Cell(**told["cell"]), "not_accounted": sentences, "code": files}
        return cls(**{"metrics": ()} | fields)

    @property
    def spending(self) -> Spending | None:
        """The budget log of secure noise; None where noise is seeded or no log is kept."""
        if not (self.spent and self.noise == "secure"):
            return None
        shared = [*self.shared, *books_around(self.beside)]
        return Spending(self.spent, self.spend_again, self.ceiling, shared, self.others)

    @property
    def fingerprint(self) -> str:
        """The hash of this cell's config with these seeds."""
        return cell_fingerprint(self.options, self.dataset, self.seeds, self.noise, self.on_training, self.origin)

    @property
    def deciding(self) -> str:
        """The same without what changes memory and speed alone, by which a training that was begun is known again."""
        options = deciding(self.options)
        return cell_fingerprint(options, self.dataset, self.seeds, self.noise, self.on_training, self.origin)

    def noise_source(self, phase: str, trial: object, seed: int) -> NoiseSource:
        """The noise source of one seed of this cell; `trial` distinguishes the runs of a phase."""
        shared = self.options.get("shared_noise", False)
        return NoiseSource(self.noise, self.cell.path, phase, trial, seed, shared=shared)

    def check_enough(self, problem: Problem) -> None:
        """Refuse to calibrate scores on too few records.

        Raises:
            StudyError: with what would do.
        """
        if self.options.get("calibration", PUBLIC) != PUBLIC:
            importlib.import_module(CALIBRATION).check_enough(problem, self.options["calibration"])

    def check_library(self) -> None:
        """Refuse to run if the library's code was edited since the study was planned.

        Raises:
            StudyError: the code has changed.
        """
        if library_hash(self.code) != self.library:
            raise StudyError(
                f"cell {self.cell.path}: the library was edited while the study ran; run the same command again"
            )


@dataclass(frozen=True)
class CellInputs:
    """The files that a cell, or its hyper-parameter search, reads.

    Attributes:
        train: folders of feature shards, one a split: what is learned from.
        held_out: the folder of the split that models are scored on: test for cells, validation for a search.
        kept: what de-duplication against each public set kept.
        statistics: private sums over the splits of `train`, which replace their features; or empty.
        trials: a finished search, or None.
        validation: the folder of the split on which paid tuning scores, or None.
        start: a file of public weights to start from, or None.
        public: a file of public points that a method may read beside its rows, or None.
        scaling: the folders hold images as they are, for a method that scales them so; None: features.
    """

    train: tuple[str, ...]
    held_out: str
    kept: tuple[str, ...] = ()
    statistics: tuple[str, ...] = ()
    trials: str | None = None
    start: str | None = None
    scaling: str | None = None
    public: str | None = None
    validation: str | None = None

    @classmethod
    def of(cls, told: Mapping) -> "CellInputs":
        """The inputs that a rule's parameter describes (plan.training)."""
        fields: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in told.items()}
        return cls(**fields)

    def held_out_rows(self) -> FeatureTable:
        """The records that models are scored on.

        Raises:
            StudyError: a file is missing or damaged.
        """
        return (images if self.scaling else shards).load(self.held_out, kept=self.kept)

    def training_tables(self) -> Iterator[FeatureTable]:
        """The shards of training records, one at a time.

        Raises:
            StudyError: a file is missing or damaged.
        """
        for folder in self.train:
            yield from (images if self.scaling else shards).iterate(folder, kept=self.kept)

    def beside(self) -> dict[str, object]:
        """Further arguments of the method's `prepare`: `start`, `scaling`, and `public` points (N, d), if any."""
        extras = {key: value for key in ("start", "scaling") if (value := getattr(self, key))}
        return extras | ({"public": read_tensors(self.public)["points"]} if self.public else {})

    def manifests(self) -> list[dict]:
        """The manifests of the private splits that the cell learns from or is tuned on.

        Raises:
            StudyError: one is missing or damaged, or the splits differ in layout or classes.
        """
        read = (images if self.scaling else shards).read_manifest
        folders = list(dict.fromkeys((*self.train, *((self.validation,) if self.validation else ()))))
        manifests = [read(folder) for folder in folders]
        for folder, manifest in zip(folders, manifests, strict=True):
            for key in ("shape", "dtype", "classes", "multi_label"):
                if manifest[key] != manifests[0][key]:
                    raise StudyError(
                        f"{folder}/manifest.json: its {key} is {manifest[key]}, that of {self.train[0]} "
                        f"{manifests[0][key]}; delete both folders and run the study again"
                    )
        return manifests

    def vouchers(self) -> dict[str, str]:
        """Split (or "kept-0", ...) -> the file whose checksum identifies its data."""
        folders = (*self.train, self.held_out, *((self.validation,) if self.validation else ()))
        paths = {Path(folder).name: f"{folder}/manifest.json" for folder in folders}
        paths |= {f"kept-{number}": path for number, path in enumerate(self.kept)}
        paths |= {"start": self.start} if self.start else {}
        return paths | ({"public": self.public} if self.public else {})

    def hashes(self) -> dict[str, str]:
        """Checksums of every input of a cell, and how images are scaled."""
        scaling = {"scaling": self.scaling} if self.scaling else {}
        return {name: sha256(path)[:16] for name, path in self.vouchers().items()} | scaling


class TrainingRows:
    """(features, labels) batches of the training records; each iteration reads them anew.

    Attributes:
        rows, nbytes: as of ShardBatches.

    Raises:
        UnreadableError: while iterating: a file is missing or damaged, or was changed since the first pass.
    """

    def __init__(self, inputs: CellInputs):
        self._source = (images.ImageBatches if inputs.scaling else ShardBatches)(inputs.train, inputs.kept)
        self.rows, self.nbytes = self._source.rows, self._source.nbytes

    def __len__(self) -> int:
        """How many batches a pass has."""
        return len(self._source)

    def subjects(self) -> np.ndarray:
        """(rows,) the subject of each record of a pass, after a first pass; for units of several records."""
        return self._source.subjects()

    def places(self) -> np.ndarray:
        """(rows,) the position of each record of a pass, counting those left out; after a first pass."""
        return self._source.places()

    def __iter__(self) -> Iterator[tuple[np.ndarray, ...]]:
        return self._read(self._source)

    def counted(self) -> Iterator[tuple[np.ndarray, ...]]:
        """Batches that also say how many records each record's subject has, where these are averaged."""
        return self._read(self._source.counted())

    def _read(self, batches: Iterable) -> Iterator[tuple[np.ndarray, ...]]:
        try:
            yield from batches
        except StudyError as error:
            raise UnreadableError(str(error)) from error


def units(manifests: Sequence[dict], unit: str) -> int:
    """The number of privacy units ("record" or "subject") in these splits."""
    return sum(manifest["subjects" if unit == "subject" else "rows"] for manifest in manifests)


def pose_problem(request: CellRequest, manifests: Sequence[dict]) -> Problem:
    """The public facts of learning from these splits; n counts all units, before any record is dropped.

    Raises:
        StudyError: delta is not below 1/n on own data (elsewhere that is a warning).
    """
    by_subject, delta = request.dataset["unit"] == "subject", float(request.dataset["delta"])
    n = units(manifests, request.dataset["unit"])
    check_delta(request.cell.dataset, request.dataset, n)
    classes, several = manifests[0]["classes"], manifests[0]["multi_label"]
    return Problem(
        n,
        tuple(manifests[0]["shape"]),
        len(classes),
        Budget(request.cell.epsilon, delta, request.options["accounting"]),
        request.dataset["positives"],
        request.options["sanitise"],
        request.dataset.get("per_subject", 1) if by_subject else 1,
        secure=request.noise == "secure",
        several=several,
        averaged=request.dataset.get("contributions") == "average",
        class_weights=weights_by_name(request.dataset.get("class_weights", {}), classes, several),
    )


def training_data(method, parameters, problem: Problem, inputs: CellInputs):
    """The input of the method's `fit`: private sums added up over splits, or prepared features.

    Raises:
        StudyError: a file is missing or damaged, or labels are out of range.
    """
    if not inputs.statistics:
        return method.prepare(TrainingRows(inputs), parameters, problem, **inputs.beside())
    from dpstudy.methods.sufficient_statistics import Statistics

    first, *others = inputs.statistics
    total = Statistics.load(first)
    for path in others:
        total += Statistics.load(path)
    return total
