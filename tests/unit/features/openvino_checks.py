"""What OpenVINO makes of networks; run by test_backends.py in a process of its own."""

import csv
import io
import subprocess
import sys
from importlib.metadata import version

import numpy as np
import pytest
import torch
from PIL import Image

from dpstudy.core.errors import StudyError
from dpstudy.features import backends, open_extractor
from dpstudy.models.kinds import load_model
from dpstudy.release.bundle import write_bundle
from tests.scenarios.data.test_alone import check_alone, drawn
from tests.unit.release.test_bundle import origin_of, pictures, train

SHAPE = (2, 3, 64, 64)


@pytest.fixture
def network():
    return torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(4), torch.nn.Flatten())


@pytest.mark.parametrize("model", ["tf_efficientnet_lite0", "test_resnet", "test_vit"])
def test_features_are_torch_s_and_those_of_each_image_alone(model):
    side = 160 if model == "test_vit" else 64
    options = {"extractor": "timm", "weights": "random", "model": model, "size": [side, side], "backend": "openvino"}
    extractor, images = open_extractor(options), drawn((32, 32, 3))
    check_alone(extractor, images)
    assert extractor.backend.startswith("openvino 20")
    expected = open_extractor(options | {"backend": "torch"})(images)
    assert np.abs(extractor(images) - expected).max() <= 1e-4 * np.abs(expected).max()


class Unconvertible(torch.nn.Module):
    def forward(self, planes):
        return torch.special.bessel_j0(planes.mean((2, 3)))  # which OpenVINO has not


def test_what_openvino_cannot_convert_is_one_sentence():
    with pytest.raises(StudyError, match="backend 'openvino' cannot run this network .*; write `backend: torch`"):
        backends.runner("openvino", Unconvertible(), SHAPE, "cpu")


def test_its_process_ends_with_what_asked_for_it(network):
    _, run = backends.runner("openvino", network, SHAPE, "cpu")
    process = run._process
    planes = torch.rand(SHAPE, generator=torch.Generator().manual_seed(3))
    assert torch.allclose(run(planes), network(planes), atol=1e-6) and process.poll() is None
    del run
    assert process.wait(timeout=20) == 0


def test_a_process_that_died_is_one_sentence(network):
    _, run = backends.runner("openvino", network, SHAPE, "cpu")
    run._process.kill()
    run._process.wait()
    with pytest.raises(StudyError, match="OpenVINO's process died"):
        run(torch.rand(SHAPE))


def test_a_bundle_asks_for_openvino_and_predicts_with_it(tmp_path):
    """It runs in a process of its own, where whoever looks at what a prediction loads does not see it."""
    options = {"extractor": "timm", "model": "test_resnet", "weights": "random", "size": [64, 64]}
    options |= {"scaling": "imagenet", "normalise": "none", "dtype": "float32", "backend": "openvino"}
    extractor = open_extractor(options)
    cell = train(tmp_path / "cell", {"method": "least_squares"}, 1, extractor=extractor)
    write_bundle("toy", origin_of(cell, features=options), [], str(tmp_path / "bundle"))
    lines = (tmp_path / "bundle/requirements.txt").read_text().splitlines()
    assert f"openvino=={version('openvino')}" in lines and any(line.startswith("torch==") for line in lines)
    image, path = pictures(5, 1)[0], tmp_path / "a.png"
    Image.fromarray(image[0, ..., 0]).save(path)
    command = [sys.executable, "-I", str(tmp_path / "bundle/predict.py"), str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 and "features by" not in done.stderr, done.stderr
    row = next(csv.DictReader(io.StringIO(done.stdout)))
    expected = load_model(cell / "model.safetensors").scores(extractor(image))
    assert [float(row[name]) for name in "abc"] == pytest.approx(list(map(float, expected[0])), rel=1e-5)
