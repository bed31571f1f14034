"""Wide ResNets against a plain rendering of de2022's description, and their printed sizes."""

import math

import pytest
import torch
from torch.nn import functional

from dpstudy.core.errors import StudyError
from dpstudy.models import networks
from dpstudy.models.standardised_conv import StandardisedConv2d


@pytest.mark.parametrize(("name", "millions"), [("wrn-16-4", 2.75), ("wrn-40-4", 8.96), ("wrn-28-10", 36.5)])
def test_sizes(name, millions):
    network = networks.build(name, (3, 32, 32), 10)
    assert sum(value.numel() for value in network.parameters()) == pytest.approx(millions * 1e6, rel=0.005)


def described(state, x, blocks, standardise=True, normalise=True):
    """The network as appendix C.1 and the released code have it: x (n, 3, H, W) to scores, from a state dict."""

    def conv(name, x, stride=1):
        w = state[f"{name}.weight"]
        if standardise:
            fan_in = w[0].numel()
            flat = w.flatten(1)
            variance = flat.var(1, unbiased=False)
            factor = state[f"{name}.gain"].flatten() * (variance * fan_in).clamp_min(1e-4).rsqrt()
            w = ((flat - flat.mean(1, keepdim=True)) * factor[:, None]).view_as(w)
        return functional.conv2d(x, w, state[f"{name}.bias"], stride, w.shape[-1] // 2)

    def before(name, x):
        x = x.relu()
        if not normalise:
            return x
        return functional.group_norm(x, 16, state[f"{name}.weight"], state[f"{name}.bias"])

    at = (1, 2) if normalise else (None, 1)  # of the normalisation and the convolution, after the ReLU
    later = (4, 5) if normalise else (None, 3)
    x = conv("0", x)
    for group in range(3):
        for block in range(blocks):
            name, stride = f"{1 + group * blocks + block}", 2 if group and not block else 1
            y = conv(f"{name}.residual.{at[1]}", before(f"{name}.residual.{at[0]}", x), stride)
            y = conv(f"{name}.residual.{later[1]}", before(f"{name}.residual.{later[0]}", y))
            if f"{name}.skip.{at[1]}.weight" in state:
                x = conv(f"{name}.skip.{at[1]}", before(f"{name}.skip.{at[0]}", x), stride)
            x = x + y
    last = 1 + 3 * blocks
    x = before(f"{last + 1}", x).mean((2, 3))
    head = last + (4 if normalise else 3)
    return x @ state[f"{head}.weight"].T + state[f"{head}.bias"]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("wrn-10-2", {}),
        ("wrn-16-1-gn", {"standardise": False}),
        ("wrn-16-1-plain", {"standardise": False, "normalise": False}),
    ],
)
def test_scores_are_those_of_the_description(name, options):
    torch.manual_seed(0)
    network = networks.build(name, (3, 12, 12), 5).double()
    with torch.no_grad():
        for value in network.parameters():
            value += 0.3 * torch.randn_like(value)
    images = torch.randn(4, 3, 12, 12, dtype=torch.float64)
    blocks = (int(name.split("-")[1]) - 4) // 6
    expected = described(network.state_dict(), images, blocks, **options)
    assert torch.allclose(network(images), expected, rtol=1e-9, atol=1e-12)


def test_weights_start_at_variance_one_over_fan_in():
    torch.manual_seed(0)
    network = networks.build("wrn-16-4", (3, 32, 32), 10)
    for layer in network.modules():
        if isinstance(layer, (torch.nn.Conv2d, torch.nn.Linear)):
            assert float(layer.weight.detach().std()) * math.sqrt(layer.weight[0].numel()) == pytest.approx(1, abs=0.15)
            assert (layer.bias == 0).all()
        if isinstance(layer, StandardisedConv2d):
            assert (layer.gain == 1).all()


@pytest.mark.parametrize(
    ("name", "shape", "words"),
    [
        ("wrn-17-4", (3, 32, 32), "network 'wrn-17-4': write wrn-D-W, with D = 10, 16, 22"),
        ("wrn-16-0", (3, 32, 32), "W at least 1"),
        ("wrn-16-4", (3072,), r"needs images \(C, H, W\) of at least 4x4, not \(3072,\)"),
        ("resnet", (3, 32, 32), "network 'resnet': there is none of that name; one of tanh-28"),
    ],
)
def test_what_cannot_be_built_is_refused(name, shape, words):
    with pytest.raises(StudyError, match=words):
        networks.build(name, shape, 10)
