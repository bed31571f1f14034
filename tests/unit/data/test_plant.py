import numpy as np
import pytest

from dpstudy.core.errors import StudyError
from dpstudy.data.plant import plant
from dpstudy.data.records import Records


def test_the_last_rows_become_copies_of_different_private_images(make_images):
    public, private = make_images("p", 30), make_images("q", 20, seed=1)
    planted = plant(public, private, 12, seed=3)
    assert planted.ids[:18].tolist() == public.ids[:18].tolist()
    np.testing.assert_array_equal(planted.images[:18], public.images[:18])
    assert planted.ids[18:].tolist() == [f"planted-{turn:05d}" for turn in range(12)]
    copies = planted.images[18:].astype(float)
    sources = []
    for turn, copy in enumerate(copies):
        variants = private.images.astype(float)
        if turn % 3 == 2:
            moved = np.concatenate([variants[:, :, :1], variants[:, :, :-1]], axis=2)
            variants = variants[:, :, ::-1] if turn % 2 else moved
        error = np.abs(variants - copy).mean(axis=(1, 2, 3))
        sources.append(int(error.argmin()))
        assert error.min() < (20 if turn % 3 == 1 else 1e-9)
        assert turn % 3 != 1 or error.min() > 0.5
        assert planted.labels[18 + turn] == private.labels[sources[-1]]
    assert len(set(sources)) == 12


def test_the_seed_decides(make_images):
    public, private = make_images("p", 30), make_images("q", 20, seed=1)
    first, again, other = (plant(public, private, 12, seed).images for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_what_does_not_fit_is_refused(make_images):
    public = make_images("p", 30)
    with pytest.raises(StudyError, match="count is 31"):
        plant(public, make_images("q", 40), 31, 0)
    with pytest.raises(StudyError, match="one shape"):
        plant(public, make_images("q", 40, (8, 8, 1)), 3, 0)
    with pytest.raises(StudyError, match="need images"):
        plant(public, Records(public.ids, None, public.labels), 3, 0)
