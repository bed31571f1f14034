"""What the de-duplication tests share: records of random smooth images."""

import numpy as np
import pytest

from dpstudy.data.records import Records


@pytest.fixture
def make_images():
    """A function: n unrelated images as records; ids "name-0", ..."""

    def make(name, n, shape=(12, 10, 1), seed=0):
        random = np.random.default_rng(seed)
        images = random.integers(0, 256, (n, *shape)).astype(np.uint8)
        ids = np.array([f"{name}-{row}" for row in range(n)], dtype=object)
        return Records(ids, images, np.arange(n, dtype=np.int32) % 3)

    return make
