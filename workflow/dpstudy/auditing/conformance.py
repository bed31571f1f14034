"""What can be checked of any method: what a record moves, what noise is drawn, and what else depends on records.

Each check trains the method on made-up records and gives back a sentence about what it found, or raises
`NonconformityError`. None is a proof: code may do with its thousandth record what it does with none before.
"""

import itertools
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from dpstudy.auditing.tapes import EnoughError, Everybody, Replay
from dpstudy.errors import StudyError
from dpstudy.methods.problem import Fit, Plan, Problem, check_fit
from dpstudy.models.kinds import load_model
from dpstudy.privacy.ledger import check_run
from dpstudy.privacy.noise import NoiseSource

BASE, MANY, FEW = 24, 4000, 500
_ROUNDING = 1 + 1e-5
_SAME = 1e-4  # of sums, in batches of another size
_TIMES_A_RECORD = 40  # bytes held for each byte of a record, at most
_SCALES = (0.0, 1e-30, 1e-3, 0.3, 1.0, 7.0, 1e4, 1e10, 1e20, 1e30)


class NonconformityError(StudyError):
    """A method does what no method may do."""


@dataclass(frozen=True)
class Subject:
    """A method with settings, on a problem of made-up records.

    Attributes:
        beside: further arguments of `prepare`.
        labels: draws (n,) or (n, m) labels.
    """

    name: str
    module: ModuleType
    parameters: Any
    problem: Problem
    beside: Mapping[str, object] = field(default_factory=dict)

    @property
    def plan(self) -> Plan:
        """What it releases."""
        return self.module.plan(self.parameters, self.problem)

    def rows(self, count: int, key: int, scale: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
        """(features, labels) of made-up records."""
        rng = np.random.default_rng(key)
        features = scale * rng.uniform(-2, 2, (count, self.problem.dim)).astype(np.float32)
        return features, self.labels(count, rng)

    def labels(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Class indices, or zeros and ones of as many positives as a record may have."""
        if self.problem.positives == 1:
            return rng.integers(self.problem.classes, size=count)
        places = np.argsort(rng.random((count, self.problem.classes)), 1)[:, : self.problem.positives]
        labels = np.zeros((count, self.problem.classes), np.int8)
        np.put_along_axis(labels, places, 1, 1)
        return labels

    def prepared(self, batches: Sequence[tuple], subjects: np.ndarray | None = None):
        """What its `prepare` makes of batches."""
        whole = _Batches(batches, subjects)
        return self.module.prepare(whole, self.parameters, self.problem, **self.beside)

    def fitted(self, data, source: NoiseSource, plan: Plan | None = None) -> Fit:
        """What its `fit` gives."""
        return self.module.fit(data, self.parameters, self.problem, plan or self.plan, source)


class _Batches(list):
    """Batches that can say whose their rows are: each row's own, where nothing else is said."""

    def __init__(self, batches: Sequence[tuple], subjects: np.ndarray | None):
        super().__init__(batches)
        self._subjects = subjects

    def subjects(self) -> np.ndarray:
        return np.arange(sum(len(labels) for _, labels in self)) if self._subjects is None else self._subjects


class _Tape(Replay):
    """A tape whose order, start and copies are the same in each run, in mode "secure" too."""

    def sampling(self, name):
        return Everybody(self._stream("sampling", name))


def sensitivity(subject: Subject) -> str:
    """Search for records that move a release by more than its event says.

    Records of every length that float32 holds, along axes and across, and broken ones; on the path of one run. Where
    batches are samples, everybody takes part.

    Raises:
        NonconformityError: one does.
    """
    plan, problem = subject.plan, subject.problem
    events = {event.name: event for event in plan.events}
    features, labels = subject.rows(BASE, 1)
    whose = np.repeat(np.arange(BASE // problem.unit_records + 1), problem.unit_records)[:BASE]
    source = NoiseSource("secure" if problem.secure else "seeded", "conformance", subject.name)
    source.transcript = []
    subject.fitted(subject.prepared([(features, labels)], whose), source)
    blank = any(event.sampling == "shuffle" or event.mechanism != "gaussian" for event in plan.events)

    def queries(row: np.ndarray, label: np.ndarray) -> list[np.ndarray]:
        count = problem.unit_records
        rows = np.vstack([features, np.repeat(row[None], count, 0)]).astype(np.float32)
        more = np.concatenate([labels, np.repeat(label[None], count, 0)])
        tape = _Tape(source)
        with suppress(EnoughError):
            subject.fitted(subject.prepared([(rows, more)], np.r_[whose, [BASE] * count]), tape)
        return tape.queries

    nobody = np.full(problem.dim, np.nan, np.float32)
    tape = _Tape(source)
    with suppress(EnoughError):
        subject.fitted(subject.prepared([(features, labels)], whose), tape)
    rng = np.random.default_rng(2)
    without = queries(nobody, subject.labels(1, rng)[0]) if blank else tape.queries
    largest = dict.fromkeys(events, 0.0)
    for row in _records(problem.dim, rng):
        with np.errstate(all="ignore"):
            with_record = queries(row.astype(np.float32), subject.labels(1, rng)[0])
        for name, moved in _moved(source.transcript, with_record, without):
            if name not in events:
                raise NonconformityError(f"it releases {name!r}, of which its plan has no event")
            most = events[name].sensitivity
            if most is None:
                continue
            largest[name] = max(largest[name], moved / most)
            if not moved <= most * _ROUNDING:
                raise NonconformityError(
                    f"a {'person' if problem.unit_records > 1 else 'record'} of length {_length(row):.3g} moves the "
                    f"release {name!r} by {moved:.6g}; its event says {most:.6g} at most"
                )
    told = ", ".join(f"{name} {ratio:.2f}" for name, ratio in largest.items())
    return f"no record of those tried moves a release by more than its event says (largest, as a share: {told})"


def _length(row: np.ndarray) -> float:
    with np.errstate(all="ignore"):
        return float(np.linalg.norm(row))


def _records(dim: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    for scale in _SCALES:
        yield scale * rng.uniform(-2, 2, dim)
        yield scale * np.eye(dim)[rng.integers(dim)]
        yield scale * np.ones(dim)
    for bad in (np.nan, np.inf, -np.inf):
        row = rng.uniform(-1, 1, dim)
        row[rng.integers(dim)] = bad
        yield row
        yield np.full(dim, bad)


def _moved(transcript, with_record: Sequence, without: Sequence) -> Iterator[tuple[str, float]]:
    """(release, how far apart its sums are), all tensors of a step together."""
    pairs = zip(transcript, with_record, without, strict=True)
    for (name, _), parts in itertools.groupby(pairs, lambda each: each[0][:2]):
        squares = [float(np.sum((a.astype(np.float64) - b) ** 2)) for _, a, b in parts]
        yield name, float(np.sqrt(sum(squares)))


def noise(subject: Subject) -> str:
    """What is drawn is what the ledger says, in several seeds, and fresh in each.

    Raises:
        NonconformityError: it is less, or other releases are made; a seed depends on the one before; or the method
            draws by itself.
    """
    plan, rows = subject.plan, subject.rows(subject.problem.n, 3)

    def run(data, seed: int) -> tuple[NoiseSource, Fit]:
        source = NoiseSource("seeded", "conformance", subject.name, seed)
        source.transcript = []
        return source, subject.fitted(data, source, plan)

    data = subject.prepared([rows])
    (first, one), (second, two) = run(data, 0), run(data, 1)
    anew, alone = run(subject.prepared([rows]), 1)
    for source in (first, second):
        try:
            check_run(plan.events, source, subject.problem.n)
        except RuntimeError as error:
            raise NonconformityError(str(error)) from error
    check_fit(one, subject.name, subject.problem)
    if not _same(second, anew) or not _alike(two, alone):
        raise NonconformityError(
            "a seed gives something else after another one than alone, with the same noise: it keeps something between "
            "seeds, or draws at random beside its noise source"
        )
    for (name, _, _, before), (_, _, _, after) in zip(first.transcript or (), second.transcript or (), strict=True):
        if np.array_equal(before, after):
            raise NonconformityError(f"two seeds release the same {name!r}: its noise is not fresh")
    return f"{sum(first.drawn.values())} releases, as the ledger says, with noise of their own in each seed"


def _same(one: NoiseSource, other: NoiseSource) -> bool:
    pairs = zip(one.transcript or (), other.transcript or (), strict=True)
    return all(a[:3] == b[:3] and np.array_equal(a[3], b[3]) for a, b in pairs)


def _alike(one: Fit, other: Fit) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("one.safetensors", "other.safetensors")]
        for path, fitted in zip(paths, (one, other), strict=True):
            fitted.model.save(path)
        return paths[0].read_bytes() == paths[1].read_bytes()


def nobody(subject: Subject) -> str:
    """A batch, or all the data, may have no record that counts: the same releases are made, with their noise.

    Raises:
        NonconformityError: fewer are, or the training fails.
    """
    features, labels = subject.rows(BASE, 4)
    source = NoiseSource("seeded", "conformance", subject.name, "nobody")
    plan = subject.plan
    try:
        fitted = subject.fitted(subject.prepared([(np.full_like(features, np.nan), labels)]), source, plan)
        check_fit(fitted, subject.name, subject.problem)
    except (StudyError, RuntimeError, ValueError, ArithmeticError) as error:
        raise NonconformityError(
            f"where no record counts its training fails, which tells that none does: {error}"
        ) from error
    declared: dict[str, int] = {}
    for event in plan.events:
        declared[event.name] = declared.get(event.name, 0) + event.count
    if dict(source.drawn) != declared:
        raise NonconformityError(f"where no record counts it releases {dict(source.drawn)}; its plan says {declared}")
    return "where no record counts, the same is released"


def batches(subject: Subject) -> str:
    """Sums do not depend on the batches in which records are read, nor on their order where all are taken.

    Raises:
        NonconformityError: they do.
    """
    features, labels = subject.rows(BASE, 5)
    source = NoiseSource("seeded", "conformance", subject.name, "batches")
    source.transcript = []
    subject.fitted(subject.prepared([(features, labels)]), source)

    def queries(parts: Sequence[slice]) -> list[np.ndarray]:
        tape = _Tape(source)
        with suppress(EnoughError):
            subject.fitted(subject.prepared([(features[part], labels[part]) for part in parts]), tape)
        return tape.queries

    whole = queries([slice(None)])
    for parts in ([slice(row, row + 1) for row in range(BASE)], [slice(0, 7), slice(7, 7), slice(7, None)]):
        for (name, *_), a, b in zip(source.transcript, whole, queries(parts), strict=True):
            if np.linalg.norm(a.astype(np.float64) - b) > _SAME * (1e-6 + np.linalg.norm(a)):
                raise NonconformityError(f"the release {name!r} depends on the batches in which records are read")
    return "sums do not depend on the batches in which records are read"


def memory(subject: Subject) -> str:
    """How much `prepare` holds for each record more.

    Raises:
        NonconformityError: more than forty times the record.
    """
    held = []
    for count in (FEW, MANY):
        batches = [subject.rows(FEW, key) for key in range(count // FEW)]
        tracemalloc.start()
        data = subject.prepared(batches)
        held.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        del data
    each = (held[1] - held[0]) / (MANY - FEW) / (4 * subject.problem.dim)
    if each > _TIMES_A_RECORD:
        raise NonconformityError(
            f"`prepare` holds {each:.0f} times a record for each record more: rows or sums should do"
        )
    return f"`prepare` holds {max(0.0, each):.1f} times a record for each record more"


def file(subject: Subject) -> str:
    """A model's file is all of the model.

    Raises:
        NonconformityError: what is read back gives other scores.
    """
    source = NoiseSource("seeded", "conformance", subject.name, "file")
    model = subject.fitted(subject.prepared([subject.rows(BASE, 6)]), source).model
    features, _ = subject.rows(BASE, 7)
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model.safetensors")
        again = load_model(Path(folder) / "model.safetensors")
    if not np.array_equal(model.scores(features), again.scores(features)):
        raise NonconformityError("the model that is read back from its file gives other scores than the one of `fit`")
    return "the model's file gives the scores of the model"


CHECKS: tuple[Callable[[Subject], str], ...] = (sensitivity, noise, nobody, batches, memory, file)


def secured(subject: Subject) -> Subject:
    """The same with noise of the operating system's."""
    return replace(subject, problem=replace(subject.problem, secure=True))
