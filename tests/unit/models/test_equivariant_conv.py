"""Shared filters against elements of the group as matrices that move positions."""

import itertools

import pytest
import torch
from torch.nn import functional

from dpstudy.models.equivariant_conv import EquivariantConv2d, FieldPool, order

KINDS = [("d4", None), ("d4", "d4"), ("d2", "d4"), ("d2", "d2"), ("d2", None)]


def elements(group):
    """2 x 2 matrices that act on (row, column), counted from the middle, in the order in which a field has its maps."""
    turn, mirror = torch.tensor([[0, -1], [1, 0]]), torch.tensor([[1, 0], [0, -1]])
    turns = {"d4": (0, 1, 2, 3), "d2": (0, 2)}[group]
    return [
        torch.linalg.matrix_power(turn.double(), r).long() @ (mirror if m else torch.eye(2).long())
        for m, r in itertools.product((0, 1), turns)
    ]


def moved(image, element):
    """(..., side, side) with what was at x at element x."""
    side, found = image.shape[-1], torch.empty_like(image)
    for row, column in itertools.product(range(side), repeat=2):
        from_middle = torch.tensor([2 * row - side + 1, 2 * column - side + 1])
        to_row, to_column = ((element @ from_middle + side - 1) // 2).tolist()
        found[..., to_row, to_column] = image[..., row, column]
    return found


def moved_maps(maps, element, group):
    """Fields of a group, moved: the map of g becomes that of element g; of an image (None), channels stay."""
    maps = moved(maps, element)
    if group is None:
        return maps
    inside = elements(group)
    to = [next(i for i, other in enumerate(inside) if (other == element @ g).all()) for g in inside]
    fields, found = maps.unflatten(1, (-1, len(inside))), torch.empty_like(maps).unflatten(1, (-1, len(inside)))
    found[:, :, to] = fields
    return found.flatten(1, 2)


def made(group, before, kernel=3):
    torch.manual_seed(0)
    channels = 2 * order(before) if before else 3
    return EquivariantConv2d(channels, 2, kernel, group, before).double(), torch.randn(2, channels, 6, 6).double()


@pytest.mark.parametrize(("group", "before"), KINDS)
def test_maps_move_as_the_image_does(group, before):
    layer, maps = made(group, before)
    for element in elements(group):
        assert torch.allclose(layer(moved_maps(maps, element, before)), moved_maps(layer(maps), element, group))


def test_a_smaller_group_is_not_equivariant_under_the_larger():
    layer, maps = made("d2", "d4")
    quarter = elements("d4")[1]
    assert not torch.allclose(
        FieldPool("d2")(layer(moved_maps(maps, quarter, "d4"))), moved(FieldPool("d2")(layer(maps)), quarter)
    )


@pytest.mark.parametrize(("group", "before"), KINDS)
def test_filters_are_the_shared_ones_moved(group, before):
    layer, maps = made(group, before)
    expected = [moved_maps(layer.weight, element, before) for element in elements(group)]
    filters = torch.stack(expected, 1).flatten(0, 1)
    assert torch.equal(layer.filters(), filters)
    bias = torch.stack([layer.bias] * len(expected), 1).flatten()
    assert torch.allclose(layer(maps), functional.conv2d(maps, filters, bias, padding=1))


@pytest.mark.parametrize(("group", "before"), KINDS)
def test_shared_gradients_are_those_of_autograd(group, before):
    layer, _ = made(group, before)
    each = torch.randn(4, layer.out_channels, layer.in_channels, 3, 3).double()
    inside = each.permute(0, 1, 3, 4, 2).flatten(2)
    for gradient, shared in zip(each, layer.shared(inside), strict=True):
        (expected,) = torch.autograd.grad((layer.filters() * gradient).sum(), layer.weight)
        assert torch.allclose(shared, expected.permute(0, 2, 3, 1).flatten(1))


def test_the_largest_of_a_field_forgets_the_element():
    maps = torch.randn(2, 3 * 8, 6, 6)
    for element in elements("d4"):
        assert torch.equal(FieldPool("d4")(moved_maps(maps, element, "d4")), moved(FieldPool("d4")(maps), element))
