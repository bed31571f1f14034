"""Private per-channel normalisation of features (tramer2021, Algorithm 2), a preprocessing step that ledgers record.

Each record contributes its vector of channel means, clipped to C1, to one noisy sum, and its vector of channel
mean squares, clipped to C2, to another. With fixed C1 and C2 (the released code clips at a data-dependent median,
which leaks) the sums have L2 sensitivities C1 and C2 under adding or removing a record, and dividing by the public
n, or by the most records that n subjects can have, gives E[x] and E[x^2]. The variance, floored, and the normalisation
of each record are post-processing.

With a `sampling_rate` q < 1 (the sampled form of tramer2021 C.7, for larger data sets) each seed draws, for each of the
two sums, a Poisson sample of its own: every record takes part with probability q, independently of everything else.
The sum keeps its sensitivity and noise and is divided by the public q n. Each release is then a Poisson-sampled
Gaussian mechanism, and the two compose as the ledger has them, as two events. Both sums over one sample would be
another mechanism: a record is in both releases or in none, so one sampled event of noise multiplier sigma/sqrt(2) would
have to be charged; two independent samples cost the same to first order and need no such argument.

What amplifies is the randomness of the sample, drawn afresh and kept secret. The paper enlarges CIFAR-10 and takes its
statistics of CIFAR-10's own records alone: a fixed subset, whose records take part for certain. That gives no
amplification, whatever part of the whole it is: it would have to be charged as full batch.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.methods.averaging import scaled
from dpstudy.methods.clipped_sum import ClippedSum
from dpstudy.methods.clipping import clip_rows
from dpstudy.methods.exact import grid_of
from dpstudy.methods.problem import Problem
from dpstudy.methods.records import Records
from dpstudy.methods.row_map import RowMap
from dpstudy.methods.units import single_records
from dpstudy.privacy.events import Event
from dpstudy.privacy.noise import NoiseSource
from dpstudy.schema.hyperparameters import Hyperparameters, setting

MEAN, SQUARE = "normalisation_mean", "normalisation_square"
_LEAST_VARIANCE = 1e-5


@dataclass(frozen=True)
class Normalisation(Hyperparameters):
    """Parameters of a private normalisation.

    Raises:
        StudyError: a number that is out of range.
    """

    mean_clip: float = setting(about="C1, bound on the norm of a record's channel means.", above=0)
    square_clip: float = setting(about="C2, bound on the norm of a record's channel mean squares.", above=0)
    noise_multiplier: float = setting(about="Of each of the two releases.", above=0)
    # Below the noise's standard deviation, a public constant, a released variance says nothing, and dividing by its
    # root would blow up the very channels that hardly vary.
    variance_floor: float | None = setting(
        None,
        "The least variance; where absent the standard deviation of the noise on it, and 1e-5 at least.",
        above=0,
    )
    low_variance: Literal["floor", "drop"] = setting(
        "floor",
        "Channels of a released variance below it: as if they had it (where absent), or left out, as tramer2021's "
        "released code does with those that are not positive.",
        filled=False,
    )
    sampling_rate: float = setting(
        1.0,
        "Each of the two statistics is released from a Poisson sample of its own, of this rate, drawn anew for each "
        "seed; from all records where absent. Not beside shuffled batches.",
        above=0,
        most=1,
        filled=False,
    )

    METHOD: ClassVar[str] = "normalisation"

    @property
    def sampled(self) -> bool:
        """Whether each seed draws its own Poisson samples of records, so that seeds do not share the sums."""
        return self.sampling_rate < 1


@dataclass(frozen=True)
class ChannelSums:
    """Private sums over records of the (K,) clipped channel means and mean squares."""

    mean: np.ndarray
    square: np.ndarray


def check_whole(method: str, normalisation: Normalisation | None) -> None:
    """Refuse a normalisation on Poisson samples beside batches that are shuffled or fixed.

    Raises:
        StudyError: it is sampled.
    """
    if normalisation and normalisation.sampled:
        raise StudyError(
            f"{method}: shuffled or fixed batches and a sampled normalisation have no common adjacency, so their "
            "guarantee could not be computed; leave out normalisation.sampling_rate"
        )


def events(normalisation: Normalisation, problem: Problem) -> tuple[Event, ...]:
    """The events of the two releases, of channel means and of mean squares.

    Raises:
        StudyError: a sample is drawn of the records of units that may have several.
    """
    if normalisation.sampled:
        single_records("normalisation", problem, "sampling_rate")
    sampling = "poisson" if normalisation.sampled else "none"
    return tuple(
        total.event(name, normalisation.noise_multiplier, sampling=sampling, sampling_rate=normalisation.sampling_rate)
        for name, total in _sums(normalisation, problem).items()
    )


def _sums(normalisation: Normalisation, problem: Problem) -> dict[str, ClippedSum]:
    return {MEAN: problem.sum_of(normalisation.mean_clip), SQUARE: problem.sum_of(normalisation.square_clip)}


def shared_sums(records: Records, normalisation: Normalisation | None, problem: Problem) -> ChannelSums | None:
    """The sums over all records, which all seeds share; None without a normalisation, or with a sampled one."""
    if normalisation is None or normalisation.sampled:
        return None
    return channel_sums(records.stored(), normalisation, problem, weights=records.weights)


def normalised(
    records: Records, sums: ChannelSums | None, normalisation: Normalisation, problem: Problem, source: NoiseSource
) -> tuple[Records, np.ndarray, np.ndarray]:
    """The records normalised by the releases of one seed, and the released center and scale (see `release`).

    Args:
        sums: what `shared_sums` gave; None with a sampled normalisation, whose sums are made here.
    """
    if sums is None:
        sums = channel_sums(records.stored(), normalisation, problem, source, records.weights)
    center, scale = release(sums, normalisation, problem, source)
    return apply(records, center, scale), center, scale


def apply(records: Records, center: np.ndarray, scale: np.ndarray) -> Records:
    """The records normalised by a center and scale that are already released."""
    return records.mapped(RowMap(center=center, scale=scale))


def channel_sums(
    blocks: Iterable[np.ndarray],
    normalisation: Normalisation,
    problem: Problem,
    source: NoiseSource | None = None,
    weights: np.ndarray | None = None,
) -> ChannelSums:
    """The sums of channel means and mean squares, in one pass over (rows, d) float32 blocks of features.

    Features are laid out as `problem.shape` = (K, H, W) or (d,); weights are (n,), of the rows of all blocks, or None.

    A sampled normalisation draws who takes part in each sum from `source`; the blocks' sizes do not matter.
    """
    channels, rate = problem.shape[0], normalisation.sampling_rate
    mean, square = np.zeros(channels), np.zeros(channels)
    bounds = [total.clip for total in _sums(normalisation, problem).values()]
    if normalisation.sampled and source is None:
        raise ValueError("a sampled normalisation needs a noise source, which draws who takes part")
    drawing = source if normalisation.sampled else None
    samples = [drawing.sampling(name) for name in (MEAN, SQUARE)] if drawing else []
    place = 0
    for features in blocks:
        block = features.reshape(-1, channels, problem.dim // channels)
        shares = None if weights is None else weights[place : place + len(block)]
        place += len(block)
        finite = np.isfinite(block).all((1, 2))
        taken = [finite, finite]
        if drawing:
            drawn = [generator.random(len(block)) < rate for generator in samples]
            for name, part in zip((MEAN, SQUARE), drawn, strict=True):
                drawing.took(name, int(part.sum()), len(block))
            taken = [finite & part for part in drawn]
        first, second = (block if part.all() else block[part] for part in taken)
        squares = np.einsum("nkp,nkp->nk", second, second) / block.shape[2]
        for total, rows, bound, part in zip((mean, square), (first.mean(2), squares), bounds, taken, strict=True):
            clipped, grid = clip_rows(rows, bound, problem.exact), grid_of(bound) if problem.exact else None
            total += scaled(clipped, None if shares is None else shares[part], grid).sum(0, dtype=np.float64)
    return ChannelSums(mean, square)


def release(
    sums: ChannelSums, normalisation: Normalisation, problem: Problem, source: NoiseSource
) -> tuple[np.ndarray, np.ndarray]:
    """The noisy center and scale, each (d,) float32, of x -> (x - center) * scale."""
    mean, square = sums.mean, sums.square
    if problem.noised:
        stds = {event.name: event.deviation for event in events(normalisation, problem)}
        mean, square = source.released(MEAN, mean, stds[MEAN]), source.released(SQUARE, square, stds[SQUARE])
    expected = _most(problem) * normalisation.sampling_rate
    mean, square = mean / expected, square / expected
    variance, floor = square - mean**2, _floor(normalisation, problem)
    scale = np.maximum(variance, floor) ** -0.5
    if normalisation.low_variance == "drop":
        scale[variance < floor] = 0
    repeat = problem.dim // len(mean)
    return np.repeat(mean, repeat).astype(np.float32), np.repeat(scale, repeat).astype(np.float32)


def _most(problem: Problem) -> int:
    """The divisor of sums: the most records there can be, since how many units of several records have is not public.

    Where some units have fewer records, means come out too small, and variances stay positive.
    """
    return problem.n * problem.unit_bound


def _floor(normalisation: Normalisation, problem: Problem) -> float:
    if normalisation.variance_floor is not None:
        return normalisation.variance_floor
    if not problem.noised:
        return _LEAST_VARIANCE
    std = normalisation.noise_multiplier * _sums(normalisation, problem)[SQUARE].sensitivity()
    noise = std / (_most(problem) * normalisation.sampling_rate)
    return max(noise, _LEAST_VARIANCE)
