"""Sampling of the records of each training step."""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from dpstudy.methods.problem import Problem
from dpstudy.methods.schedule import GRADIENT, Schedule
from dpstudy.methods.units import Units
from dpstudy.privacy.noise import NoiseSource
from dpstudy.privacy.secure_sampling import AnyGenerator


def batches(
    rows: int,
    rate: float,
    steps: int,
    sampling: str,
    generator: AnyGenerator | None,
    slots: int | None = None,
    largest: int | None = None,
    took: Callable[[int, int], None] | None = None,
    at: Callable[[np.ndarray], np.ndarray] | None = None,
) -> Iterator[np.ndarray | None]:
    """Yield the row indices of `steps` batches; None stands for all rows (rate 1, which needs no generator).

    "poisson" takes each row independently with probability `rate` (a batch may be empty), tells `took` how many of how
    many it took, and leaves a random subset of `largest` rows where there are more. "shuffle" cuts a fresh permutation
    of `slots` places (default: rows) into batches of round(slots x rate), dropping the remainder, so that a row takes
    part at most once an epoch, and yields the rows `at` the places of each (default: the first places are the rows').
    With slots the public n, records that de-duplication dropped keep their empty places: the number of batches in an
    epoch is what the accounting says, whatever was dropped, and who is in which batch does not depend on others.

    Raises:
        ValueError: a rate below 1 without a generator.
    """
    if rate == 1.0:
        for _ in range(steps):
            yield None
    elif generator is None:
        raise ValueError(f"a rate of {rate:g} needs a generator, which draws who takes part")
    elif sampling == "poisson":
        for _ in range(steps):
            taken = np.flatnonzero(generator.random(rows, dtype=np.float64) < rate)
            if took is not None:
                took(len(taken), rows)
            if largest is not None and len(taken) > largest:
                taken = np.sort(generator.choice(taken, largest, replace=False))
            yield taken
    else:
        places = rows if slots is None else slots
        for index in _shuffled(places, max(1, round(places * rate)), steps, generator):
            yield index[index < rows] if at is None else at(index)


def grouped_batches(
    rows: int, rate: float, bands: int, steps: int, source: NoiseSource, took: Callable[[int, int], None]
) -> Iterator[np.ndarray]:
    """Yield the row indices of `steps` batches, each from the next of `bands` groups of rows, by Poisson at this rate.

    The group of a row is drawn at random, independently of the others': none moves where another one comes or goes.
    """
    group = source.sampling("groups").integers(bands, size=rows)
    members, generator = [np.flatnonzero(group == number) for number in range(bands)], source.sampling("batches")
    for step in range(steps):
        of_group = members[step % bands]
        taken = of_group[generator.random(len(of_group), dtype=np.float64) < rate]
        took(len(taken), len(of_group))
        yield taken


def _shuffled(rows: int, size: int, steps: int, generator: AnyGenerator) -> Iterator[np.ndarray]:
    per_epoch = max(1, rows // size)
    for step in range(steps):
        if step % per_epoch == 0:
            order = generator.permutation(rows)
        place = step % per_epoch
        yield order[place * size : (place + 1) * size]


def units_of_steps(
    schedule: Schedule, problem: Problem, units: Units, source: NoiseSource
) -> Iterator[np.ndarray | None]:
    """Yield the rows of each training step, all rows of each sampled unit; None stands for all rows.

    Who takes part is counted, for the ledger to be held against it.
    """
    rate, took = schedule.rate(problem), partial(source.took, GRADIENT)
    if schedule.bands > 1:
        steps, rate = schedule.total_steps(problem), schedule.group_rate(problem)
        return map(units.rows, grouped_batches(units.count, rate, schedule.bands, steps, source, took))
    drawn = batches(
        units.count,
        rate,
        schedule.total_steps(problem),
        schedule.sampling,
        source.sampling("batches") if rate < 1.0 else None,
        problem.n,
        schedule.largest_batch,
        took,
        units.at,
    )
    return map(units.rows, drawn)
