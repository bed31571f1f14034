"""The transform by NumPy against that by torch, which is tested against kymatio's; and filters that were written."""

import numpy as np
import pytest
import torch

from dpstudy.core.errors import StudyError
from dpstudy.features.scatter_filters import FILE, Filters
from dpstudy.features.scattering import Scattering
from dpstudy.features.scattering_numpy import NumpyScattering
from dpstudy.features.scatternet import ScatterNet, open


@pytest.mark.parametrize("size", [(28, 28), (32, 32), (12, 17), (5, 40)])
def test_it_is_torch_s(size):
    maps = np.random.default_rng(0).random((11, *size), dtype=np.float32)
    filters = Filters.of(*size)
    expected = Scattering(filters)(torch.from_numpy(maps)).numpy()
    found = NumpyScattering(filters)(maps)
    assert found.dtype == np.float32 and found.shape == expected.shape
    assert np.abs(found - expected).max() < 2e-6 * np.abs(expected).max()


def test_filters_are_what_was_written(tmp_path):
    filters = Filters.of(20, 24)
    filters.write(tmp_path)
    found = Filters.read(tmp_path)
    assert (found.size, found.pad) == (filters.size, filters.pad)
    maps = torch.rand(3, 20, 24)
    assert torch.equal(Scattering(found)(maps), Scattering(filters)(maps))


def test_a_folder_with_filters_is_used_and_says_by_what(tmp_path, monkeypatch):
    images = np.random.default_rng(1).integers(0, 256, (3, 12, 12, 3), np.uint8)
    options = {"scaling": "imagenet", "mirror": True, "root": True}
    plain = open(options)
    assert plain.backend == "torch" and open(options, backbone_folder=tmp_path).backend == "torch"
    Filters.of(12, 12).write(tmp_path)
    assert np.array_equal(open(options, backbone_folder=tmp_path)(images), plain(images))
    monkeypatch.setattr("dpstudy.features.scatternet.find_spec", lambda _: None)
    without = open(options, backbone_folder=tmp_path)
    assert without.backend == "numpy" and np.allclose(without(images), plain(images), atol=1e-4)
    with pytest.raises(StudyError, match="filters for maps of"):
        without(images[:, :8])


def test_damaged_filters_are_a_sentence(tmp_path):
    (tmp_path / FILE).write_bytes(b"x" * 50)
    with pytest.raises(StudyError, match=FILE):
        ScatterNet("unit", filters=tmp_path)(np.zeros((1, 8, 8, 1), np.uint8))
