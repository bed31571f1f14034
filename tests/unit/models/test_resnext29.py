"""ResNeXt-29 against a loop over groups, and the names and counts of the checkpoint that it must take."""

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch.nn import functional

from dpstudy.features import open_extractor
from dpstudy.models.resnext29 import ResNeXt29

OPTIONS = {"extractor": "timm", "model": "resnext29-cifar", "weights": "resnext29.safetensors", "scaling": "cifar"}


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    network = ResNeXt29().eval()
    for name, value in network.state_dict().items():
        if value.is_floating_point() and "bn" in name.split(".")[-2]:
            value.add_(0.2 * torch.rand_like(value))
    return network


def test_it_has_the_parameters_of_the_paper():
    """34.4 million (Xie et al. 2017, Table 7); the classifier of 100 classes has 102,500 of them."""
    with torch.device("meta"):
        counts = [sum(value.numel() for value in ResNeXt29(classes).parameters()) for classes in (0, 10, 100)]
    assert counts == [34_416_448, 34_426_698, 34_518_948]


def test_it_has_the_names_of_the_released_checkpoint(network):
    names = set(network.state_dict())
    assert {"conv_1_3x3.weight", "bn_1.running_var"} < names
    for stage in (1, 2, 3):
        for block in (0, 1, 2):
            place = f"stage_{stage}.stage_{stage}_bottleneck_{block}"
            assert {f"{place}.{name}.weight" for name in ("conv_reduce", "conv_conv", "conv_expand")} < names
            assert {f"{place}.{name}.running_mean" for name in ("bn_reduce", "bn", "bn_expand")} < names
            assert (f"{place}.shortcut.shortcut_conv.weight" in names) == (block == 0)
    assert len(names) == 6 + 9 * 18 + 3 * 6
    assert not any(name.startswith("classifier") for name in names)
    assert tuple(network.state_dict()["stage_3.stage_3_bottleneck_0.conv_conv.weight"].shape) == (2048, 256, 3, 3)


def slow(state, x):
    """The features of the figure's equations, group by group, in float64."""
    state = {name: value.double() for name, value in state.items()}

    def norm(x, name):
        mean, var, gain, bias = (
            state[f"{name}.{key}"].view(-1, 1, 1) for key in ("running_mean", "running_var", "weight", "bias")
        )
        return (x - mean) / torch.sqrt(var + 1e-5) * gain + bias

    x = norm(functional.conv2d(x, state["conv_1_3x3.weight"], padding=1), "bn_1").clamp(min=0)
    for stage in (1, 2, 3):
        for block in (0, 1, 2):
            place, stride = f"stage_{stage}.stage_{stage}_bottleneck_{block}", 2 if stage > 1 and block == 0 else 1
            inner = norm(functional.conv2d(x, state[f"{place}.conv_reduce.weight"]), f"{place}.bn_reduce").clamp(min=0)
            weight = state[f"{place}.conv_conv.weight"]
            pairs = zip(inner.chunk(8, 1), weight.chunk(8, 0), strict=True)
            inner = torch.cat([functional.conv2d(part, own, stride=stride, padding=1) for part, own in pairs], 1)
            inner = norm(inner, f"{place}.bn").clamp(min=0)
            inner = norm(functional.conv2d(inner, state[f"{place}.conv_expand.weight"]), f"{place}.bn_expand")
            if block == 0:
                projected = functional.conv2d(x, state[f"{place}.shortcut.shortcut_conv.weight"], stride=stride)
                x = norm(projected, f"{place}.shortcut.shortcut_bn")
            x = (x + inner).clamp(min=0)
    return x.mean((2, 3))


@pytest.mark.slow
def test_features_from_a_checkpoint_equal_a_loop_over_groups(network, tmp_path):
    state = network.state_dict()
    old = {name: value for name, value in state.items() if "num_batches" not in name}  # as checkpoints of 2017 are
    save_file(old | {"classifier.weight": torch.ones(100, 1024)}, tmp_path / "resnext29.safetensors")
    images = np.random.default_rng(0).integers(0, 256, (2, 32, 32, 3)).astype(np.uint8)
    extractor = open_extractor(OPTIONS, data_root=tmp_path)
    features = extractor(images)
    scaled = (images / 255 - np.array([0.4914, 0.4822, 0.4465])) / np.array([0.2023, 0.1994, 0.2010])
    with torch.no_grad():
        expected = slow(state, torch.from_numpy(scaled).permute(0, 3, 1, 2)).numpy()
    assert features.shape == (2, 1024) and np.abs(expected).mean() > 1e-3
    np.testing.assert_allclose(features, expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max())
    np.testing.assert_array_equal(open_extractor(OPTIONS | {"scaling": "model"}, data_root=tmp_path)(images), features)
