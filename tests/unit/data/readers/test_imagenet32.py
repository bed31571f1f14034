"""ImageNet in 32 by 32 pixels, from small batches in its format."""

import numpy as np
import pytest

from dpstudy.core.errors import StudyError
from dpstudy.data.readers import open_reader


@pytest.fixture
def batches(tmp_path):
    """Two training files and one of validation, of 4 x 4 pixels."""
    folder = tmp_path / "small"
    folder.mkdir()
    rng = np.random.default_rng(0)
    made = {}
    for name, rows in (("train_data_batch_1", 5), ("train_data_batch_2", 3), ("val_data", 2)):
        made[name] = rng.integers(0, 256, (rows, 48), np.uint8), rng.integers(1, 8, rows)
        np.savez(folder / f"{name}.npz", data=made[name][0], labels=made[name][1], mean=np.zeros(48))
    return tmp_path, made


def test_downsampled_imagenet_is_read_file_by_file(batches):
    root, made = batches
    reader = open_reader("imagenet32", {"location": "small", "classes": 7}, root)
    assert (
        reader.rows("train").ids.tolist() == [f"train-{row:05d}" for row in range(8)] and len(reader.rows("test")) == 2
    )
    records = reader.read("train", np.array([7, 0, 4]))
    data = np.concatenate([made["train_data_batch_1"][0], made["train_data_batch_2"][0]])
    labels = np.concatenate([made["train_data_batch_1"][1], made["train_data_batch_2"][1]])
    assert records.labels.tolist() == (labels[[7, 0, 4]] - 1).tolist()
    np.testing.assert_array_equal(records.images, data[[7, 0, 4]].reshape(3, 3, 4, 4).transpose(0, 2, 3, 1))


def test_what_is_wrong_with_a_batch_is_named(batches):
    root, made = batches
    with pytest.raises(StudyError, match=r"batch_1.npz \(less 1\): row \d has label \d, but the 2 classes are 0 to 1"):
        open_reader("imagenet32", {"location": "small", "classes": 2}, root)
    np.savez(root / "small/val_data.npz", data=made["val_data"][0][:, :40], labels=made["val_data"][1])
    reader = open_reader("imagenet32", {"location": "small", "classes": 7}, root)
    with pytest.raises(StudyError, match=r"`data` is uint8 of shape \(2, 40\), not uint8 of \(2, 3 S S\)"):
        reader.read("test", np.array([0]))
    (root / "small/val_data.npz").write_bytes(b"no archive")
    with pytest.raises(StudyError, match=r"val_data.npz: damaged or truncated"):
        open_reader("imagenet32", {"location": "small", "classes": 7}, root)
    np.savez(root / "small/val_data.npz", data=np.array([{}], dtype=object), labels=made["val_data"][1])
    reader = open_reader("imagenet32", {"location": "small", "classes": 7}, root)
    with pytest.raises(StudyError, match=r"val_data.npz: damaged .*allow_pickle"):
        reader.read("test", np.array([0]))
