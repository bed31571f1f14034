"""A search for records that change a release by more than the sensitivity in the ledger."""

import itertools
from collections.abc import Iterator, Sequence
from contextlib import suppress

import numpy as np

from dpstudy.auditing.checked_method import BASE, CheckedMethod, NonconformityError
from dpstudy.auditing.tapes import EnoughError, Everybody, Replay
from dpstudy.privacy.noise import NoiseSource

_AROUND = tuple(0.005 * 1.25**power for power in range(28))
_ROUNDING = 1 + 1e-5
_SCALES = (0.0, 1e-30, 1e-3, 0.3, 1.0, 7.0, 1e4, 1e10, 1e20, 1e30)


class Tape(Replay):
    """A tape with the same record order, initial parameters and augmented copies in each run, in mode "secure" too.

    Attributes:
        by_place: something but who takes part is drawn, which may go by the places of records.
    """

    by_place = False

    def sampling(self, name):
        return _Noted(self._stream("sampling", name), self)


class _Noted(Everybody):
    def __init__(self, generator: np.random.Generator, tape: Tape):
        super().__init__(generator)
        self._tape = tape

    def __getattr__(self, name):
        self._tape.by_place = True
        return super().__getattr__(name)


def sensitivity(checked: CheckedMethod) -> str:
    """Check that no record tried changes a release by more than the sensitivity of its event.

    Records of every length that float32 holds, along axes and across, broken ones, and ones like the others, behind
    these and in front; on the path of one run. Where batches are samples, everybody takes part.

    Raises:
        NonconformityError: one does.
    """
    largest = {event.name: 0.0 for event in checked.plan.events}
    rng, (features, labels) = np.random.default_rng(2), checked.rows(BASE, 1)
    many = [*_records(checked.problem.dim, rng), features[0], 1.5 * features[0], -features[0]]
    around = [  # a record that is near to all of them, which are not near to each other
        (0.5 * features[0] + length * np.eye(BASE, checked.problem.dim), [0.5 * features[0]]) for length in _AROUND
    ]
    for rows, records in ((features, many), (features[:1] + 1e-4 * features, many[-3:]), *around):
        for name, ratio in _search(checked, rows.astype(np.float32), labels, records).items():
            largest[name] = max(largest[name], ratio)
    shares = ", ".join(f"{name} {ratio:.2f}" for name, ratio in largest.items())
    return f"no record of those tried moves a release by more than its event says (largest, as a share: {shares})"


def _search(
    checked: CheckedMethod, features: np.ndarray, labels: np.ndarray, records: Sequence[np.ndarray]
) -> dict[str, float]:
    """Release -> the most that one of the records moves it beside the others, in terms of what its event says."""
    plan, problem = checked.plan, checked.problem
    events, count = {event.name: event for event in plan.events}, problem.unit_records
    whose = 1 + np.repeat(np.arange(BASE // count + 1), count)[:BASE]
    source = NoiseSource("secure" if problem.secure else "seeded", "conformance", checked.name)
    source.transcript = []
    checked.fitted(checked.prepared([(features, labels)], whose), source, plan)
    blank = any(event.sampling == "shuffle" or event.mechanism != "gaussian" for event in plan.events)

    def run(row: np.ndarray | None, label: np.ndarray, first: bool) -> Tape:
        parts = [(features, labels, whose)]
        if row is not None:
            parts.append((np.repeat(row[None], count, 0), np.repeat(label[None], count, 0), np.zeros(count, int)))
        rows, marks, units = (np.concatenate(each) for each in zip(*(parts[::-1] if first else parts), strict=True))
        tape = Tape(source)
        with suppress(EnoughError), np.errstate(all="ignore"):
            checked.fitted(checked.prepared([(rows.astype(np.float32), marks)], units), tape, plan)
        return tape

    nobody, rng, largest = np.full(problem.dim, np.nan), np.random.default_rng(2), dict.fromkeys(events, 0.0)
    for first in (False, True):
        without = run(nobody if blank else None, checked.labels(1, rng)[0], first)
        if first and without.by_place and not blank:
            break  # the others' places move, and with them what was drawn for these
        for row in records:
            with_record = run(row, checked.labels(1, rng)[0], first)
            for name, moved in _moved(source.transcript, with_record.queries, without.queries):
                if name not in events:
                    raise NonconformityError(f"it releases {name!r}, of which its plan has no event")
                most = events[name].sensitivity
                if most is None:
                    continue
                largest[name] = max(largest[name], moved / most)
                if not moved <= most * _ROUNDING:
                    raise NonconformityError(
                        f"a {'person' if count > 1 else 'record'} of length {_length(row):.3g} moves the release "
                        f"{name!r} by {moved:.6g}; its event says {most:.6g} at most"
                    )
    return largest


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
