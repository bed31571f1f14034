"""Conformance tests of any method: its noise, its sampling, and that nothing else depends on private records.

Each check trains the method on made-up records and gives back a sentence about what it found, or raises
`NonconformityError`. None is a proof: code may do with its thousandth record what it does with none before.
"""

import math
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from dpstudy.auditing.checked_method import BASE, CheckedMethod, NonconformityError
from dpstudy.auditing.replay import Playing, Recording
from dpstudy.auditing.replay import Tape as Releases
from dpstudy.auditing.sensitivity import Tape, sensitivity
from dpstudy.auditing.tapes import EnoughError
from dpstudy.core.errors import StudyError
from dpstudy.methods.problem import Fit, check_fit
from dpstudy.models.kinds import load_model
from dpstudy.privacy.ledger import check_run
from dpstudy.privacy.noise import NoiseSource

MANY, FEW = 4000, 500
_SEEDS, _SECONDS = 4000, 6.0
_RUNS, _MOST_RUNS, _ALONE = 60, 300, 8  # runs of records that are there alone
_SAME = 1e-4  # of sums, in batches of another size
_TIMES_A_RECORD = 40  # bytes held for each byte of a record, at most


def noise(checked: CheckedMethod) -> str:
    """Check that the noise drawn matches the ledger, and is fresh in every seed.

    Raises:
        NonconformityError: it is less, or other releases are made; a seed depends on the one before; or the method
            draws by itself.
    """
    plan, rows = checked.plan, checked.rows(checked.problem.n, 3)

    def run(data, seed: int) -> tuple[NoiseSource, Fit]:
        source = NoiseSource("seeded", "conformance", checked.name, seed)
        source.transcript = []
        return source, checked.fitted(data, source, plan)

    data = checked.prepared([rows])
    (first, one), (second, two) = run(data, 0), run(data, 1)
    anew, alone = run(checked.prepared([rows]), 1)
    for source in (first, second):
        try:
            check_run(plan.events, source, checked.problem.n)
        except RuntimeError as error:
            raise NonconformityError(str(error)) from error
    check_fit(one, checked.name, checked.problem)
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


class _Asked(NoiseSource):
    """Noise whose sums are noted: of made-up records."""

    def __init__(self, *key: object):
        super().__init__("seeded", *key)
        self.sums: dict[tuple[str, int], list[np.ndarray]] = {}

    def released(self, name, query, std, step=0, tensor="", symmetric=False):
        self.sums.setdefault((name, step), []).append(np.array(query))
        return super().released(name, query, std, step, tensor, symmetric)


def sampling(checked: CheckedMethod) -> str:
    """Check that each seed and step draws its Poisson sample afresh and independently of the records.

    Raises:
        NonconformityError: it goes by the record, or by something that is the same in each seed.
    """
    alone = [event for event in checked.plan.events if not event.bands]  # else rows hold gradients of earlier steps too
    rates = {event.name: event.sampling_rate for event in alone if event.sampling_rate < 1}
    rates = {name: rate for name, rate in rates.items() if rate > 0}
    if not rates or any(event.sampling == "shuffle" for event in checked.plan.events):
        return "nothing is sampled by Poisson"
    plan, far, counted = checked.plan, 0.0, 0
    runs = min(_MOST_RUNS, max(_RUNS, round(2 / min(rates.values()))))
    rows, labels = checked.rows(_ALONE, 11)
    for row, label in zip(rows, labels, strict=True):
        data, took = checked.prepared([(row[None], label[None])]), dict.fromkeys(rates, 0)
        by_step: dict[tuple[str, int], int] = {}
        for seed in range(runs):
            source = _Asked("conformance", checked.name, seed)
            checked.fitted(data, source, plan)
            for (name, step), sums in source.sums.items():
                if name in took:
                    by_step[name, step] = by_step.get((name, step), 0) + any(np.any(each != 0) for each in sums)
        for (name, _), times in by_step.items():
            far += (times - runs * rates[name]) ** 2 / (runs * rates[name] * (1 - rates[name]))
            counted += 1
    if counted and far > counted + 12 * math.sqrt(2 * counted) + 70:  # of chi-square: below 1e-12
        raise NonconformityError(
            f"over {runs} seeds who takes part in a sample is not what a coin of its rate gives: single records take "
            "part too often, too seldom, or always in the same steps"
        )
    return f"over {runs} seeds single records take part as often as coins of the accounted rates say"


def nobody(checked: CheckedMethod) -> str:
    """Check that a method makes the same noisy releases where a batch, or all the data, is empty.

    Raises:
        NonconformityError: fewer are, or the training fails.
    """
    features, labels = checked.rows(BASE, 4)
    source = NoiseSource("seeded", "conformance", checked.name, "nobody")
    plan = checked.plan
    try:
        fitted = checked.fitted(checked.prepared([(np.full_like(features, np.nan), labels)]), source, plan)
        check_fit(fitted, checked.name, checked.problem)
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


def batches(checked: CheckedMethod) -> str:
    """Check that sums do not depend on how records are batched, nor, without sampling, on their order.

    Under secure noise not by a bit: its guarantee counts on sums of contributions on a grid (methods/exact.py). Of
    records of so many magnitudes, float64 holds no others without rounding.

    Raises:
        NonconformityError: they do.
    """
    exact, rng = checked.problem.secure, np.random.default_rng(5)
    features, labels = checked.rows(BASE, 5)
    if exact:
        features *= np.ldexp(np.float32(1), rng.integers(-40, 1, features.shape))
    source = NoiseSource("seeded", "conformance", checked.name, "batches")
    source.transcript = []
    checked.fitted(checked.prepared([(features, labels)]), source)

    def queries(parts: Sequence[np.ndarray]) -> list[np.ndarray]:
        tape = Tape(source)
        with suppress(EnoughError):
            read = [(features[part], labels[part]) for part in parts]
            checked.fitted(checked.prepared(read, np.concatenate(parts)), tape)
        return tape.queries

    places = np.arange(BASE)
    whole, orders = queries([places]), [np.split(places, BASE), np.split(places, [7, 7])]
    if all(event.sampling == "none" for event in checked.plan.events):
        orders.append([rng.permutation(BASE)])
    for parts in orders:
        for (name, *_), a, b in zip(source.transcript, whole, queries(parts), strict=True):
            if np.linalg.norm(a.astype(np.float64) - b) > (0 if exact else _SAME * (1e-6 + np.linalg.norm(a))):
                raise NonconformityError(
                    f"the release {name!r} depends on the batches in which records are read, or on their order"
                    + (": under secure noise contributions must lie on a grid (methods/exact.py)" if exact else "")
                )
    return "sums do not depend on the batches in which records are read, nor on their order" + ", to the bit" * exact


def memory(checked: CheckedMethod) -> str:
    """Check that the memory `prepare` takes for each record is bounded.

    Raises:
        NonconformityError: more than forty times the record.
    """
    peaks = []
    for count in (FEW, MANY):
        batches = [checked.rows(FEW, key) for key in range(count // FEW)]
        tracemalloc.start()
        data = checked.prepared(batches)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        del data
    each = (peaks[1] - peaks[0]) / (MANY - FEW) / (4 * checked.problem.dim)
    if each > _TIMES_A_RECORD:
        raise NonconformityError(
            f"`prepare` holds {each:.0f} times a record for each record more: rows or sums should do"
        )
    return f"`prepare` holds {max(0.0, each):.1f} times a record for each record more"


def file(checked: CheckedMethod) -> str:
    """Check that a saved and reloaded model gives the same scores.

    Raises:
        NonconformityError: what is read back gives other scores.
    """
    source = NoiseSource("seeded", "conformance", checked.name, "file")
    model = checked.fitted(checked.prepared([checked.rows(BASE, 6)]), source).model
    features, _ = checked.rows(BASE, 7)
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model.safetensors")
        again = load_model(Path(folder) / "model.safetensors")
    if not np.array_equal(model.scores(features), again.scores(features)):
        raise NonconformityError("the model that is read back from its file gives other scores than the one of `fit`")
    return "the model's file gives the scores of the model"


def seeds(checked: CheckedMethod) -> str:
    """Check over many seeds that the fit depends on records through the releases alone, so that rare branches are met.

    Raises:
        NonconformityError: they do not.
    """
    plan, ended = checked.plan, time.monotonic() + _SECONDS
    one, other = (checked.prepared([checked.rows(BASE, key)]) for key in (8, 9))
    tested, made = checked.rows(BASE, 10)[0], 0
    while made < _SEEDS and time.monotonic() < ended:
        made, tape = made + 1, Releases()
        recorded = checked.fitted(one, Recording(tape, "seeded", checked.name, made), plan).model
        played = checked.fitted(other, Playing(tape, "seeded", checked.name, made), plan).model
        if not np.array_equal(recorded.scores(tested), played.scores(tested)):
            raise NonconformityError(
                f"seed {made} of those tried gives another model where other records are behind the same releases"
            )
    return f"in {made} seeds the same releases give the same with other records"


CHECKS: tuple[Callable[[CheckedMethod], str], ...] = (
    sensitivity,
    noise,
    sampling,
    nobody,
    batches,
    seeds,
    memory,
    file,
)
EXACT = (sensitivity, batches)  # which sums under secure noise must pass anew


def secured(checked: CheckedMethod) -> CheckedMethod:
    """The same method with noise from the operating system's entropy ("secure")."""
    return replace(checked, problem=replace(checked.problem, secure=True))
