"""Noise on a grid: its law over all random words of small tables, by statistics at full size, and what it hides."""

import math
import secrets
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpstudy.privacy.noise import NoiseSource
from dpstudy.privacy.secure_noise import MARGIN, GridGaussian

SIZE = 400_000
FAR = 6.0


def law_of(gaussian, slot_bits, width):
    """k -> its chance per attempt, from all words: the chances of slots and places are exact."""
    slots, places = np.arange(1 << slot_bits, dtype=np.uint64), np.arange(width, dtype=np.uint64)
    words = ((slots[:, None] << np.uint64(64 - slot_bits)) | places).ravel()
    chances, leads = {}, 0
    for tail in (False, True):
        found, taken = gaussian.candidates(words, tail)
        if not tail:
            leads = (taken < 0).mean()
        weight = leads if tail else 1.0
        for k, chance in zip(found[taken >= 0], taken[taken >= 0], strict=True):
            chances[int(k)] = chances.get(int(k), 0.0) + weight * chance / len(words)
    return chances


@pytest.mark.parametrize("std", [1.0, 1.37, 1.9, 3e-7])
def test_every_integer_has_its_chance(std):
    grid_bits, slot_bits = 8, 12
    gaussian = GridGaussian(std, grid_bits, slot_bits)
    chances = law_of(gaussian, slot_bits, width=1 << (grid_bits - 5))
    s = gaussian.steps
    assert s * gaussian.grid == std and math.frexp(gaussian.grid)[0] == 0.5  # a power of two
    assert min(chances) <= -10 * s and max(chances) >= 10 * s - 1 and len(chances) == max(chances) - min(chances) + 1
    ratios = np.array([chance / math.exp(-0.5 * (k / s) ** 2) for k, chance in chances.items()])
    assert ratios.max() / ratios.min() - 1 < 1e-12
    assert 0.85 < sum(chances.values()) <= 1


def test_no_candidate_is_taken_with_a_chance_above_one():
    for _ in range(20):
        gaussian = GridGaussian(math.exp(np.random.default_rng(secrets.randbits(60)).uniform(-20, 20)))
        words = np.frombuffer(secrets.token_bytes(8 * 50_000), np.uint64)
        for tail in (False, True):
            assert gaussian.candidates(words, tail)[1].max() < 1 + 1e-12


@pytest.mark.parametrize("std", [1.0, 0.3, 1.99, 1e9])
def test_it_is_normal(std):
    noise = GridGaussian(std).noise((SIZE,)) / std
    assert stats.kstest(noise, "norm").pvalue > 1e-7
    assert abs(noise.mean()) < FAR / math.sqrt(SIZE)
    assert abs(noise.var() - 1) < FAR * math.sqrt(2 / SIZE)
    assert abs((noise**4).mean() - 3) < FAR * math.sqrt(96 / SIZE)
    beyond = np.abs(noise) > 4  # the second table
    assert stats.binomtest(int(beyond.sum()), SIZE, 2 * stats.norm.sf(4)).pvalue > 1e-7
    assert stats.binomtest(int((noise > 0).sum()), SIZE, 0.5).pvalue > 1e-7


def test_the_tail_is_normal_too():
    """Of the second table alone: as many at each distance as a normal has beyond where it begins, 4 or more."""
    gaussian = GridGaussian(1.3)
    begins = math.ceil(4 * gaussian.steps / 2**39) * 2**39 / gaussian.steps
    found, chances = gaussian.candidates(np.frombuffer(secrets.token_bytes(8 * SIZE), np.uint64), tail=True)
    taken = found[np.random.default_rng(secrets.randbits(60)).random(SIZE) < chances / chances.max()] / gaussian.steps
    assert len(taken) > 10_000 and np.abs(taken).min() >= begins - 1e-9
    assert stats.kstest(stats.norm.sf(np.abs(taken)) / stats.norm.sf(begins), "uniform").pvalue > 1e-7
    assert stats.binomtest(int((taken > 0).sum()), len(taken), 0.5).pvalue > 1e-7


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_release_is_sum_and_noise_on_one_grid(dtype):
    """Neighbouring sums reach the same numbers: what a floating-point sum reaches tells its summands apart."""
    std = 0.7
    grid = GridGaussian(std * (1 + MARGIN)).grid
    for query in (np.full(2000, 1 / 3, dtype), np.full(2000, np.pi * 1e4, dtype), np.zeros(2000, dtype)):
        noisy = NoiseSource("secure", "cell").released("gram", query, std)
        assert noisy.dtype == dtype and abs(noisy.astype(np.float64).std() / std - 1) < 0.2
        assert all(Fraction(float(value)) % Fraction(grid) == 0 for value in noisy.astype(np.float64))
    floating = 1 / 3 + np.random.default_rng(0).standard_normal(2000) * std
    assert any(Fraction(float(value)) % Fraction(grid) for value in floating)


def test_the_margin_covers_the_rounding_of_the_query():
    """Two neighbours' sums, rounded, are further apart by at most the margin where z sqrt(D) is below 2^27."""
    rng = np.random.default_rng(secrets.randbits(60))
    for multiplier, size in ((1.0, 10), (100.0, 10**6), (2.0**17, 2**20)):
        query = rng.normal(size=size) * 1e3
        step = rng.normal(size=size)
        step /= np.linalg.norm(step)  # sensitivity 1
        law = GridGaussian(multiplier * (1 + MARGIN))
        apart = np.linalg.norm(law.rounded(query + step) - law.rounded(query))
        assert apart <= 1 + MARGIN
        assert law.grid * np.sqrt(size) <= MARGIN  # at worst: half a step of the grid for each number of either


def test_each_release_draws_anew():
    source = NoiseSource("secure", "cell")
    query = np.zeros(1000)
    draws = [source.released("gradient", query, 1.0, step) for step in range(4)]
    assert len(np.unique(np.concatenate(draws))) == 4000 and source.drawn == {"gradient": 4}
    with pytest.raises(RuntimeError, match="already drawn"):
        source.released("gradient", query, 1.0, 3)
    assert not query.any()


def test_the_law_is_that_of_another_library():
    """OpenDP's exact sampler of the discrete Gaussian (Canonne, Kamath and Steinke 2020), where it is installed."""
    opendp = pytest.importorskip("opendp.prelude")
    opendp.enable_features("contrib")
    ours, count = GridGaussian(1.37, grid_bits=8), 40_000
    space = opendp.vector_domain(opendp.atom_domain(T=int)), opendp.l2_distance(T=float)
    theirs = np.array(opendp.m.make_gaussian(*space, scale=float(ours.steps))([0] * count))
    drawn = np.round(ours.noise((count,)) / ours.grid).astype(int)
    edges = np.quantile(theirs, np.linspace(0, 1, 41)[1:-1])
    table = np.array([np.bincount(np.searchsorted(edges, each), minlength=40) for each in (drawn, theirs)])
    assert stats.chi2_contingency(table).pvalue > 1e-9
    assert drawn.std() == pytest.approx(theirs.std(), rel=FAR / math.sqrt(count))
