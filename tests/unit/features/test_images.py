"""Images that a network reads as they are: the numbers of the extractor pixels, without its files."""

import numpy as np
import pyarrow as pa
import pytest

from dpstudy.core.errors import StudyError
from dpstudy.core.files import write_table
from dpstudy.data.records import Records
from dpstudy.features import images, open_extractor
from dpstudy.features.scaling import constants
from dpstudy.methods import network_dpsgd
from dpstudy.methods.problem import Problem
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.noise import NoiseSource


@pytest.fixture
def folder(make_folder):
    rng = np.random.default_rng(4)
    pictures = rng.integers(256, size=(30, 28, 28, 3)).astype(np.uint8)
    ids = np.array([f"r{row:02d}" for row in range(30)], dtype=object)
    records = Records(ids, pictures, rng.integers(3, size=30).astype(np.int32))
    return make_folder(records, "toy", "train", private=True, classes=["a", "b", "c"]), pictures


@pytest.mark.parametrize("scaling", ["unit", "imagenet", "cifar"])
def test_scaled_they_are_what_pixels_extracts(folder, scaling):
    path, pictures = folder
    manifest, table = images.read_manifest(path), images.load(path)
    assert (manifest["shape"], manifest["dtype"], table.features.dtype) == ([3, 28, 28], "uint8", np.uint8)
    center, scale = constants(scaling, (3, 28, 28))
    extracted = open_extractor({"extractor": "pixels", "scaling": scaling})(pictures).reshape(30, -1)
    np.testing.assert_allclose((table.features - center) * scale, extracted, rtol=1e-5, atol=1e-5)


def test_a_network_trains_on_them_as_on_pixels(folder, monkeypatch):
    """The same noise and batches: models differ by rounding, and score raw images as the other scores pixels."""
    path, pictures = folder
    parameters = network_dpsgd.Parameters(
        network="lenet", learning_rate=0.5, clipping_norm=1.0, batch_size=10, steps=3, optimiser="sgd"
    )
    problem = Problem(30, (3, 28, 28), 3, Budget("8", 1e-3))
    plan = network_dpsgd.plan(parameters, problem)
    pixels = open_extractor({"extractor": "pixels", "scaling": "imagenet"})(pictures).reshape(30, -1)
    labels = images.load(path).labels
    models = []
    for batches, extra in (([(pixels, labels)], {}), (images.ImageBatches([path]), {"scaling": "imagenet"})):
        data = network_dpsgd.prepare(batches, parameters, problem, **extra)
        models.append(network_dpsgd.fit(data, parameters, problem, plan, NoiseSource("seeded", "x")).model)
    for name, value in models[0].state.items():
        np.testing.assert_allclose(models[1].state[name], value, atol=1e-4, err_msg=name)
    np.testing.assert_allclose(models[1].scores(images.load(path).features), models[0].scores(pixels), atol=1e-3)


def test_dropped_rows_are_left_out(folder, tmp_path):
    path, _ = folder
    kept = {"dataset": ["toy"] * 20, "split": ["train"] * 20, "id": [f"r{row:02d}" for row in range(10, 30)]}
    write_table(tmp_path / "kept.parquet", pa.table(kept))
    assert list(images.load(path, [tmp_path / "kept.parquet"]).ids) == kept["id"]
    batches = images.ImageBatches([path], [tmp_path / "kept.parquet"])
    assert batches.places().tolist() == list(range(10, 30))
    assert images.ImageBatches([path, path]).places().tolist() == list(range(60))
    twice = images.ImageBatches([path, path], [tmp_path / "kept.parquet"])
    assert twice.places().tolist() == [*range(10, 30), *range(40, 60)]
    assert (batches.rows, batches.nbytes, sum(len(labels) for _, labels in batches)) == (30, 30 * 2352, 20)


def test_what_does_not_go_is_refused(folder, make_records, make_folder):
    with pytest.raises(StudyError, match="as they are take unit, symmetric, imagenet, cifar"):
        constants("opponent", (3, 28, 28))
    with pytest.raises(StudyError, match="needs 3 channels"):
        constants("cifar", (1, 28, 28))
    normalised = {"mean_clip": 1.0, "square_clip": 1.0, "noise_multiplier": 8.0}
    parameters = network_dpsgd.Parameters(
        network="lenet", learning_rate=0.5, clipping_norm=1.0, steps=3, normalisation=normalised
    )
    with pytest.raises(StudyError, match="extract the images with extractor pixels"):
        network_dpsgd.prepare([], parameters, Problem(30, (3, 28, 28), 3, Budget("8", 1e-3)), scaling="unit")
