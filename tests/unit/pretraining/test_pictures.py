import random

import numpy as np
import pytest
import torch

from dpstudy.pretraining.pictures import Pictures
from dpstudy.pretraining.recipe import Recipe
from dpstudy.pretraining.rows import Order, PublicRows


def pictures(public, part=(0, 1), size=(8, 8), scaling="unit", **options):
    rows = PublicRows(public / "train")
    recipe = Recipe(1, 32, 0.1, **options)
    return Pictures(rows, Order.of(recipe.seed, rows, 32), recipe, scaling, size, part)


KINDS = [
    {"augmentation": "none"},
    {"augmentation": "warp"},
    {"augmentation": "crop"},
    {"augmentation": "inception", "rand_augment": {"layers": 2, "magnitude": 15}},
    {"augmentation": "contrast", "objective": "contrast"},
]


@pytest.mark.parametrize("options", KINDS, ids=lambda options: options["augmentation"])
def test_a_steps_pictures_depend_on_nothing_else(public, options):
    """Not on what was drawn before, on which steps were asked for, or on who draws; and they leave no trace."""
    made = pictures(public, **options)
    before = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()  # noqa: NPY002
    seen, labels = made[5]
    after = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()  # noqa: NPY002
    assert before == after
    again, same = pictures(public, **options)[5]
    assert torch.equal(seen, again) and torch.equal(labels, same)
    other, _ = made[6]
    assert not torch.equal(seen, other)
    views = 2 if options["augmentation"] == "contrast" else 1
    assert seen.shape == (32 * views, 1, 8, 8) and labels.shape == (32,) and 0 <= seen.min() and seen.max() <= 1
    if views == 2:
        assert not torch.equal(seen[:32], seen[32:])


def test_processes_share_a_step_and_augment_on_their_own(public):
    whole, labels = pictures(public, augmentation="none")[3]
    parts = [pictures(public, (rank, 3), augmentation="none")[3] for rank in range(3)]
    for rank, (seen, own) in enumerate(parts):
        assert torch.equal(seen, whole[rank::3]) and torch.equal(own, labels[rank::3])
    first, second = (pictures(public, (rank, 2), augmentation="warp", seed=4)[3][0] for rank in range(2))
    assert len(first) == len(second) == 16 and not torch.equal(first, second)


def test_pictures_are_resized_and_scaled_as_features_will_be(public):
    plain, _ = pictures(public, augmentation="none")[0]
    large, _ = pictures(public, augmentation="none", size=(12, 10))[0]
    assert large.shape == (32, 1, 12, 10) and 0 <= large.min() and large.max() <= 1
    assert abs(float(plain.mean() - large.mean())) < 0.02
    seen, _ = pictures(public, augmentation="inception", size=(16, 16))[0]
    assert seen.shape == (32, 1, 16, 16)


def test_shards_beyond_memory_are_read_one_after_the_other(public, monkeypatch):
    whole = sorted(pictures(public, augmentation="none")[step][0].sum().item() for step in range(13))
    monkeypatch.setattr("dpstudy.pretraining.rows.HELD_BYTES", 1)
    made = pictures(public, augmentation="none")
    rows = torch.cat([made[step][0] for step in range(15)])
    assert len(rows) == 400 and len(made[0][0]) == 32
    assert rows.sum().item() == pytest.approx(sum(whole), rel=1e-5)
