"""Who takes part under secure noise: the laws that accounting supposes, from words that nobody can foretell."""

import hashlib
import itertools
from collections import Counter

import numpy as np
import pytest
from scipy import stats

from dpstudy.config.space import draw
from dpstudy.methods.augmentation import Augmentation
from dpstudy.methods.sampling import batches
from dpstudy.privacy import secure_sampling
from dpstudy.privacy.noise import NoiseSource
from dpstudy.privacy.secure_sampling import SecureGenerator
from tests.unit.release.test_bundle import METHODS, train

UNLIKELY = 1e-9  # of a test that should pass
SECURE = SecureGenerator()


def agrees(counts, chances=None):
    """Whether counts are such as chances (the same for all, where absent) give."""
    counts = np.asarray(counts)
    expected = None if chances is None else np.asarray(chances) * counts.sum()
    return stats.chisquare(counts, expected).pvalue > UNLIKELY


def test_secure_draws_come_from_words_of_the_system_alone_and_seeded_ones_are_as_ever(monkeypatch):
    source = NoiseSource("secure", "cell", 0)
    assert isinstance(source.sampling("batches"), SecureGenerator)
    monkeypatch.setattr(secure_sampling, "words", lambda count: np.full(count, 3 << 62, np.uint64))
    assert (source.sampling("batches").random(5) == 0.75).all() and source.sampling("number").integers(1 << 40) == 0
    text = "\x1f".join(["cell", "0", "sampling", "batches"])
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest(), "little")
    expected = np.random.Generator(np.random.PCG64DXSM(seed)).random(9)
    assert np.array_equal(NoiseSource("seeded", "cell", 0).sampling("batches").random(9), expected)


def test_numbers_are_uniform_and_independent():
    drawn = SECURE.random(400_000)
    assert drawn.min() >= 0 and drawn.max() < 1 and len(np.unique(drawn)) == len(drawn)
    assert stats.kstest(drawn, "uniform").pvalue > UNLIKELY
    assert abs(np.corrcoef(drawn[1:], drawn[:-1])[0, 1]) < 6 / np.sqrt(len(drawn))
    low = (drawn * 2.0**53).astype(np.int64) % 64  # the last bits
    assert agrees(np.bincount(low, minlength=64))
    assert SECURE.random((3, 4)).shape == (3, 4) and isinstance(SECURE.random(), float)
    ranged = np.array([SECURE.uniform(-3, 5) for _ in range(3000)])
    assert stats.kstest(ranged, "uniform", (-3, 8)).pvalue > UNLIKELY


@pytest.mark.parametrize("rate", [0.003, 0.2, 0.9])
def test_each_record_is_in_a_poisson_batch_by_the_rate_and_apart_from_the_others(rate):
    rows, steps = 200, 4000
    source, taken = NoiseSource("secure", "cell"), np.zeros((steps, rows), bool)
    for row, index in zip(taken, batches(rows, rate, steps, "poisson", source.sampling("batches")), strict=True):
        row[index] = True
    chances = [stats.binomtest(int(count), steps, rate).pvalue for count in taken.sum(0)]
    assert min(chances) > UNLIKELY / rows
    sizes = taken.sum(1)
    assert stats.binomtest(int(sizes.sum()), rows * steps, rate).pvalue > UNLIKELY
    variance = rows * rate * (1 - rate)
    assert abs(sizes.var() / variance - 1) < 6 * np.sqrt(2 / steps + 1 / (steps * variance))
    assert abs(np.corrcoef(sizes[1:], sizes[:-1])[0, 1]) < 6 / np.sqrt(steps)


def test_integers_are_uniform_in_each_range():
    for low, high in ((0, 2), (0, 7), (-3, 10)):
        drawn = SECURE.integers(low, high, size=50_000)
        assert drawn.min() == low and drawn.max() == high - 1 and agrees(np.bincount(drawn - low))
    wide = (1 << 62) + (1 << 61)  # a third of all words but for rejection would be twice as likely
    drawn = np.array([SECURE.integers(wide) for _ in range(5000)])
    assert isinstance(SECURE.integers(5), int) and stats.kstest(drawn / wide, "uniform").pvalue > UNLIKELY
    both = SECURE.integers(np.array([3, 9]), size=(20_000, 2))
    assert agrees(np.bincount(both[:, 0])) and agrees(np.bincount(both[:, 1])) and both.max(0).tolist() == [2, 8]
    grey = SECURE.integers(0, 255, 100_000, dtype=np.uint8, endpoint=True)
    assert grey.dtype == np.uint8 and agrees(np.bincount(grey, minlength=256))
    with pytest.raises(ValueError, match="no integer lies between 3 and 3"):
        SECURE.integers(3, 3)


def test_a_word_beyond_the_last_multiple_is_drawn_again(monkeypatch):
    given = iter([[2**64 - 1, 5], [7]])
    monkeypatch.setattr(secure_sampling, "words", lambda count: np.array(next(given), np.uint64))
    assert SECURE.integers(10, size=2).tolist() == [7, 5]


def test_every_order_is_as_likely():
    orders = Counter(tuple(SECURE.permutation(4).tolist()) for _ in range(24_000))
    assert agrees([orders[order] for order in itertools.permutations(range(4))])
    first = np.bincount([SECURE.permutation(50)[0] for _ in range(10_000)], minlength=50)
    assert agrees(first) and sorted(SECURE.permutation(1000).tolist()) == list(range(1000))


def test_an_order_of_equal_keys_is_drawn_again(monkeypatch):
    given = iter([[5, 5, 1], [3, 2, 1]])
    monkeypatch.setattr(secure_sampling, "words", lambda count: np.array(next(given), np.uint64))
    assert SECURE.permutation(3).tolist() == [2, 1, 0]


def test_every_choice_is_as_likely():
    chosen = Counter(tuple(sorted(SECURE.choice(np.array([2, 3, 5, 7]), 2).tolist())) for _ in range(12_000))
    assert agrees([chosen[pair] for pair in itertools.combinations((2, 3, 5, 7), 2)]) and len(chosen) == 6
    assert sorted(SECURE.choice(5, 5, replace=False).tolist()) == list(range(5))
    with pytest.raises(ValueError, match="3 of 2 values"):
        SECURE.choice([1, 2], 3)


def test_the_number_of_trials_is_geometric():
    chance = 0.2
    drawn = np.array([SECURE.geometric(chance) for _ in range(20_000)])
    counts = np.bincount(np.minimum(drawn, 25), minlength=26)[1:]
    chances = chance * (1 - chance) ** np.arange(24)
    assert agrees(counts, [*chances, 1 - chances.sum()])
    assert SECURE.geometric(1.0) == 1


@pytest.mark.parametrize("case", ["samples", "normalised", "iterated", "network", "augmented", "cut"])
def test_methods_train_with_it(case, tmp_path):
    more = {
        "augmented": METHODS["network"] | {"augmentation": {"multiplicity": 2}, "batch_size": 20},
        "cut": METHODS["samples"] | {"largest_batch": 45},
    }
    train(tmp_path, (METHODS | more)[case], 1)


def test_settings_are_drawn_with_it():
    space = {
        "rate": {"low": 0.1, "high": 10.0, "log": True, "integer": False},
        "count": {"low": 1, "high": 3, "log": False, "integer": True},
        "loss": {"choices": ["a", "b"]},
    }
    drawn = [draw(space, SECURE) for _ in range(4000)]
    logarithms = np.log10([setting["rate"] for setting in drawn])
    assert stats.kstest(logarithms, "uniform", (-1, 2)).pvalue > UNLIKELY
    assert agrees(np.bincount([setting["count"] for setting in drawn])[1:])
    assert agrees(list(Counter(setting["loss"] for setting in drawn).values()))
    assert Augmentation(3).choose(5, (1, 8, 8), SECURE).shape == (5, 3, 3)
