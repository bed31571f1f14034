"""What OpenVINO makes of networks; run by test_backends.py in a process of its own."""

import numpy as np
import pytest
import torch

from dpstudy.core.errors import StudyError
from dpstudy.features import backends, open_extractor
from tests.scenarios.data.test_alone import check_alone, drawn

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
