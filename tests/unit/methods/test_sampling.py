"""Who takes part in a step: counted over many steps, with fresh seeds."""

import secrets

import numpy as np
import pytest
from scipy import stats

from dpstudy.methods.sampling import batches


def test_poisson_sampling_takes_each_record_at_the_accounted_rate():
    count, rate, steps = 400, 0.07, 500
    taken, sizes = np.zeros(count), []
    for index in batches(count, rate, steps, "poisson", np.random.default_rng(secrets.randbits(60))):
        assert len(set(index.tolist())) == len(index), "a record takes part once"
        taken[index] += 1
        sizes.append(len(index))
    assert stats.binomtest(int(taken.sum()), count * steps, rate).pvalue > 1e-7
    assert stats.chisquare(taken, np.full(count, taken.mean())).pvalue > 1e-7
    assert 0.6 < np.var(sizes) / (count * rate * (1 - rate)) < 1.6, "batch sizes vary as independent choices make them"


@pytest.mark.parametrize("sampling", ["poisson", "shuffle"])
def test_nobody_is_drawn_without_a_generator(sampling):
    with pytest.raises(ValueError, match="a rate of 0.5 needs a generator"):
        next(batches(10, 0.5, 1, sampling, None))


@pytest.mark.parametrize(("kept", "size"), [(100, 10), (88, 10), (41, 7), (5, 10)])
def test_shuffling_takes_each_record_at_most_once_an_epoch(kept, size):
    """Dropped records keep their places: an epoch has as many batches as the public n says."""
    public, epochs = 100, 6
    per_epoch = public // size
    generator = np.random.default_rng(secrets.randbits(60))
    found = list(batches(kept, size / public, epochs * per_epoch, "shuffle", generator, slots=public))
    for epoch in range(epochs):
        rows_taken = np.concatenate([index for index in found[epoch * per_epoch : (epoch + 1) * per_epoch]])
        assert len(set(rows_taken)) == len(rows_taken)
        assert rows_taken.size == 0 or rows_taken.max() < kept
        if public % size == 0:
            assert len(rows_taken) == kept
