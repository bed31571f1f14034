"""The equivariant ResNet-9: its size, what it does not tell apart, and a plain rendering of its description."""

import math

import pytest
import torch
from torch.nn import functional

from dpstudy.core.errors import StudyError
from dpstudy.models import networks
from dpstudy.models.equivariant_conv import EquivariantConv2d

NAME = "equivariant-resnet-9"


def made(shape=(3, 16, 16), classes=5):
    torch.manual_seed(0)
    network = networks.build(NAME, shape, classes).double()
    with torch.no_grad():
        for value in network.parameters():
            value += 0.1 * torch.randn_like(value)
    return network, torch.randn(3, *shape, dtype=torch.float64)


def test_size():
    network = networks.build(NAME, (3, 32, 32), 10)
    convolutions = 8 * 27 + 16 * 9 * (64 + 2 * 128) + 32 * 9 * (128 + 256 + 2 * 128)
    biases, classifier = 8 + 3 * 16 + 4 * 32, 128 * 10 + 10
    assert sum(value.numel() for value in network.parameters()) == convolutions + biases + classifier


def test_scores_are_those_of_the_description():
    network, images = made()
    filters = [layer for layer in network.modules() if isinstance(layer, EquivariantConv2d)]

    def block(number, x, pooled=False):
        layer, elements = filters[number], filters[number].out_channels // len(filters[number].bias)
        x = functional.conv2d(x, layer.filters(), layer.bias.repeat_interleave(elements), padding=1)
        x = normalised(x * torch.tanh(torch.log1p(torch.exp(x))))
        return x.unflatten(2, (-1, 2)).unflatten(4, (-1, 2)).amax((3, 5)) if pooled else x

    def normalised(x):
        groups = x.reshape(len(x), 8, -1)
        mean, variance = groups.mean(2, keepdim=True), groups.var(2, unbiased=False, keepdim=True)
        return ((groups - mean) / (variance + 1e-5).sqrt()).view_as(x)

    x = block(1, block(0, images), pooled=True)
    x = normalised(x + block(3, block(2, x)))
    x = block(5, block(4, x, pooled=True), pooled=True)
    x = normalised(x + block(7, block(6, x)))
    x = x.unflatten(1, (32, 4)).amax(2).unflatten(2, (2, -1)).unflatten(4, (2, -1)).mean((3, 5))
    last = network[-1]
    assert torch.allclose(network(images), x.flatten(1) @ last.weight.T + last.bias, rtol=1e-9)


def test_maps_before_the_classifier_follow_half_turns_and_mirror_images_alone():
    network, images = made()
    body = network[:-3]

    def moves(image, turns, mirrored):
        return torch.rot90(image.flip(-1) if mirrored else image, turns, (2, 3))

    for mirrored in (False, True):
        for turns in range(4):
            same = torch.allclose(body(moves(images, turns, mirrored)), moves(body(images), turns, mirrored))
            assert same == (turns % 2 == 0)


def test_weights_start_at_variance_one_over_fan_in():
    torch.manual_seed(0)
    network = networks.build(NAME, (3, 32, 32), 10)
    for layer in network.modules():
        if isinstance(layer, (EquivariantConv2d, torch.nn.Linear)):
            assert float(layer.weight.detach().std()) * math.sqrt(layer.weight[0].numel()) == pytest.approx(1, abs=0.15)
            assert (layer.bias == 0).all()


@pytest.mark.parametrize("shape", [(3, 28, 28), (3, 32, 40), (3, 8, 8), (3072,)])
def test_images_that_cannot_be_turned_or_halved_are_refused(shape):
    with pytest.raises(StudyError, match="square images .* side is a multiple of 8 and at least 16"):
        networks.build(NAME, shape, 10)
