"""Scores of records that are computed one at a time."""

import numpy as np

from dpstudy.models.alone import scores_alone
from dpstudy.models.linear import LinearModel


class Crowded:
    """A model whose last bits depend on how many records are scored at once."""

    def scores(self, features):
        assert features.flags.c_contiguous
        return np.float32(1e-7) * len(features) + features @ np.ones((3, 2), np.float32)


def test_no_record_s_scores_depend_on_which_others_there_are():
    rows = np.random.default_rng(0).standard_normal((50, 3)).astype(np.float32)
    whole, few = scores_alone(Crowded(), rows), scores_alone(Crowded(), rows[7:9])
    assert not np.array_equal(Crowded().scores(rows)[7:9], Crowded().scores(rows[7:9]))
    np.testing.assert_array_equal(whole[7:9], few)
    assert whole.shape == (50, 2) and whole.dtype == np.float32
    assert scores_alone(Crowded(), rows[:0]).shape == (0, 2)


def test_a_model_that_can_score_records_alone_does_so_itself():
    class Able(LinearModel):
        def scores_alone(self, features):
            return "its own"

    assert scores_alone(Able(np.zeros((2, 3)), np.zeros(2)), np.zeros((4, 3))) == "its own"
