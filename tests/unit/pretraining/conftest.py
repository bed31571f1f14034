"""What the tests of pre-training share: a public set of glyphs."""

import numpy as np
import pytest

from dpstudy.data.readers import open_reader
from tests.unit.features.conftest import make_folder, make_records  # noqa: F401, fixtures

DIGITS = [str(digit) for digit in range(10)]


@pytest.fixture
def public(make_folder):  # noqa: F811
    """400 glyphs to train on, in three shards, and 100 to validate with."""
    records = open_reader("glyphs", {"count": 500}, ".").read("all", np.arange(500))
    make_folder(records.take(np.arange(400, 500)), "glyphs", "validation", private=False, classes=DIGITS)
    return make_folder(records.take(np.arange(400)), "glyphs", "train", count=3, private=False, classes=DIGITS).parent
