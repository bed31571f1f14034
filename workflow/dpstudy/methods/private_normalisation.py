"""Private per-channel normalisation of features (tramer2021, Algorithm 2), a ledgered preprocessing step.

Each record contributes its vector of channel means, clipped to C1, to one noisy sum, and its vector of channel
mean squares, clipped to C2, to another. With fixed C1 and C2 (the released code clips at a data-dependent median,
which leaks) the sums have L2 sensitivities C1 and C2 under adding or removing a record, and dividing by the public
n gives E[x] and E[x^2]. The variance, floored, and the normalisation of each record are post-processing.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from dpstudy.methods.clipping import clip_rows
from dpstudy.methods.problem import Problem
from dpstudy.privacy.events import Event
from dpstudy.privacy.noise import NoiseSource

MEAN, SQUARE = "normalisation_mean", "normalisation_square"


@dataclass(frozen=True)
class Normalisation:
    """Parameters of a private normalisation.

    Attributes:
        mean_clip: C1, bound on the norm of a record's channel means.
        square_clip: C2, bound on the norm of a record's channel mean squares.
        noise_multiplier: sigma_norm of each of the two releases.
        variance_floor: tau; also guards channels that the noise made negative.
    """

    mean_clip: float
    square_clip: float
    noise_multiplier: float
    variance_floor: float = 1e-5


@dataclass(frozen=True)
class ChannelSums:
    """Private sums over records of the (K,) clipped channel means and mean squares."""

    mean: np.ndarray
    square: np.ndarray


def events(normalisation: Normalisation) -> tuple[Event, ...]:
    """The two releases."""
    return (
        Event(MEAN, "gaussian", normalisation.noise_multiplier, normalisation.mean_clip),
        Event(SQUARE, "gaussian", normalisation.noise_multiplier, normalisation.square_clip),
    )


def channel_sums(blocks: Iterable[np.ndarray], normalisation: Normalisation, problem: Problem) -> ChannelSums:
    """One pass over (rows, d) float32 blocks of features laid out as `problem.shape` = (K, H, W) or (d,)."""
    channels = problem.shape[0]
    mean, square = np.zeros(channels), np.zeros(channels)
    bounds = (normalisation.mean_clip, normalisation.square_clip) if problem.clipped else (np.inf, np.inf)
    for features in blocks:
        block = features.reshape(-1, channels, problem.dim // channels)
        finite = np.isfinite(block).all((1, 2))
        block = block[finite] if not finite.all() else block
        mean += clip_rows(block.mean(2), bounds[0]).sum(0, dtype=np.float64)
        square += clip_rows(np.einsum("nkp,nkp->nk", block, block) / block.shape[2], bounds[1]).sum(0, dtype=np.float64)
    return ChannelSums(mean, square)


def release(
    sums: ChannelSums, normalisation: Normalisation, problem: Problem, source: NoiseSource
) -> tuple[np.ndarray, np.ndarray]:
    """The noisy center and scale, each (d,) float32, of x -> (x - center) * scale."""
    mean, square = sums.mean, sums.square
    if problem.noised:
        sigma = normalisation.noise_multiplier
        mean = mean + source.gaussian(MEAN, mean.shape, sigma * normalisation.mean_clip, dtype=np.float64)
        square = square + source.gaussian(SQUARE, square.shape, sigma * normalisation.square_clip, dtype=np.float64)
    mean, square = mean / problem.n, square / problem.n
    variance = np.maximum(square - mean**2, normalisation.variance_floor)
    repeat = problem.dim // len(mean)
    return np.repeat(mean, repeat).astype(np.float32), np.repeat(variance**-0.5, repeat).astype(np.float32)
