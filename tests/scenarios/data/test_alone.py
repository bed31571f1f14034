"""What an extractor makes of an image does not depend on others, on its place among them or on their number, bit for
bit: only then is it the same in a study, after another record was deleted, and where a bundle sees it alone."""

import numpy as np
import pytest

from dpstudy.core.files import write_json, write_tensors
from dpstudy.features import open_extractor
from dpstudy.features.projection import Projection
from dpstudy.features.scatter_filters import Filters
from dpstudy.features.scattering_numpy import NumpyScattering

SCATTERNET = {"extractor": "scatternet", "mirror": True, "root": True}
NETWORK = {"extractor": "timm", "weights": "random"}
CASES = [
    ("pixels", {"extractor": "pixels", "deskew": True}, (28, 28, 1)),
    ("patches", {"extractor": "random_patches", "filters": 16}, (28, 28, 1)),
    ("patches-colour", {"extractor": "random_patches", "filters": 16}, (32, 31, 3)),
    *((f"scatternet-{side}", SCATTERNET, (side, side, 1)) for side in (8, 20, 28, 29, 32, 36)),
    ("scatternet-colour", SCATTERNET | {"scaling": "opponent"}, (32, 32, 3)),
    ("resnet", NETWORK | {"model": "test_resnet", "size": "native"}, (32, 32, 3)),
    ("resnet-resized", NETWORK | {"model": "test_resnet", "size": [45, 47], "crop": [40, 41]}, (32, 30, 1)),
    ("resnet-mirrored", NETWORK | {"model": "test_resnet", "size": [40, 40], "mirror": True}, (32, 32, 3)),
    ("vit", NETWORK | {"model": "test_vit"}, (32, 32, 3)),
    ("lite", NETWORK | {"model": "tf_efficientnet_lite0", "size": [48, 48]}, (32, 32, 3)),
]


def check_alone(extract_all, images, sizes=(1, 3, 16)):
    """Equal bytes in any order, in batches of any size, and beside other neighbours."""
    whole, rng = extract_all(images), np.random.default_rng(1)
    assert len(np.unique(whole.reshape(len(whole), -1), axis=0)) == len(images), "features that tell images apart"
    for _ in range(2):
        order = rng.permutation(len(images))
        np.testing.assert_array_equal(extract_all(images[order]), whole[order])
    for size in sizes:
        parts = [extract_all(images[start : start + size]) for start in range(0, len(images), size)]
        np.testing.assert_array_equal(np.concatenate(parts), whole)
    others = images.copy()
    others[1::2] = rng.permutation(others[1::2].ravel()).reshape(others[1::2].shape)
    np.testing.assert_array_equal(extract_all(others)[::2], whole[::2])


def drawn(shape, count=35):
    return np.random.default_rng(0).integers(0, 256, (count, *shape)).astype(np.uint8)


@pytest.mark.parametrize(("options", "shape"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_an_image_has_the_features_that_it_has_alone(options, shape):
    check_alone(open_extractor(options), drawn(shape))


@pytest.mark.slow
def test_and_compiled():
    options = NETWORK | {"model": "test_resnet", "size": [64, 64]}
    extractor, images = open_extractor(options | {"backend": "compile"}), drawn((32, 32, 3))
    check_alone(extractor, images)
    assert extractor.backend.startswith("compile 2")
    expected = open_extractor(options)(images)
    assert np.abs(extractor(images) - expected).max() <= 1e-4 * np.abs(expected).max()


def test_scatternet_without_torch():
    maps = drawn((28, 28)).astype(np.float32)
    check_alone(NumpyScattering(Filters.of(28, 28)), maps)


@pytest.mark.parametrize("with_torch", [True, False])
@pytest.mark.parametrize(("dim", "kept"), [(81, 7), (784, 64), (1280, 333)])
def test_a_projection(with_torch, dim, kept, tmp_path, monkeypatch):
    rng = np.random.default_rng(2)
    tensors = {"mean": rng.standard_normal(dim), "components": rng.standard_normal((kept, dim))}
    tensors |= {"center": tensors["mean"], "scale": rng.random(dim), "eigenvalues": rng.random(kept)}
    write_tensors(tmp_path / "projection.safetensors", {k: v.astype(np.float32) for k, v in tensors.items()})
    write_json(tmp_path / "card.json", {"fit": "f"})
    if not with_torch:
        monkeypatch.setattr("dpstudy.features.projection.find_spec", lambda _: None)
    projection, rows = Projection(tmp_path), rng.standard_normal((150, dim)).astype(np.float32)
    check_alone(projection, rows, sizes=(1, 7, 64))
    exact = (rows - tensors["center"]) * tensors["scale"]
    exact = (exact / np.linalg.norm(exact, axis=1, keepdims=True) - tensors["mean"]) @ tensors["components"].T
    np.testing.assert_allclose(projection(rows), exact, atol=1e-4)
