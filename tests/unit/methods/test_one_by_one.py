"""Gradients taken record by record: of any network, and none of them touched by another record."""

import copy
import math

import pytest
import torch
from torch import nn

from dpstudy.core.errors import StudyError
from dpstudy.methods import one_by_one
from dpstudy.methods.one_by_one import OneByOne
from tests.unit.methods.test_record_gradients import CLASSES, DIRECT, NETWORKS, looped, made


@pytest.mark.parametrize("copies", [1, 4])
@pytest.mark.parametrize("name", NETWORKS)
def test_sums_equal_a_loop(name, copies):
    network, records, labels = made(name, copies)
    part = torch.arange(len(labels)) != 2
    rest = part.repeat_interleave(copies)
    for bound in (math.inf, 0.05):
        found = OneByOne(network.double()).clipped_sum(records.double(), labels, "sigmoid", bound, copies, part)
        slow = looped(network, records[rest], labels[part], "sigmoid", bound, copies)
        assert set(found) == set(slow)
        for key, value in slow.items():
            assert torch.allclose(found[key], value, rtol=1e-9, atol=1e-11), key


class Shared(nn.Module):
    """What the engine has no rule for: a layer run twice, a parameter of two layers, one that is not used."""

    def __init__(self):
        super().__init__()
        self.inner, self.other, self.out = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, CLASSES)
        self.other.weight, self.idle = self.inner.weight, nn.Parameter(torch.ones(2))

    def forward(self, x):
        return self.out(self.other(self.inner(torch.tanh(self.inner(x))).tanh()))


@pytest.mark.parametrize("name", [*DIRECT, "shared"])
def test_no_parameter_needs_a_rule(name):
    torch.manual_seed(0)
    network = (Shared if name == "shared" else DIRECT[name])().double()
    records = torch.randn(4, 6).double() if name == "shared" else torch.randn(4, 1, 4, 4).double()
    found = OneByOne(network).clipped_sum(records, torch.arange(4) % CLASSES, "softmax", 0.05)
    idle = found.pop("idle", torch.zeros(1))
    network.idle = None
    slow = looped(network, records, torch.arange(4) % CLASSES, "softmax", 0.05)
    assert not idle.any() and set(found) == set(slow)
    for key, value in slow.items():
        assert torch.allclose(found[key], value, rtol=1e-9, atol=1e-11), key


@pytest.mark.parametrize("name", ["wrn-10-1", "no rule", "scatter-32"])
def test_a_gradient_is_the_same_to_the_last_bit_whoever_else_is_there(name):
    network, records, labels = made(name)
    engine, alone = OneByOne(network), torch.arange(7) == 5
    first = engine.clipped_sum(records, labels, "softmax", 0.05, part=alone)
    others = torch.cat([100 * records[:2], records[5:6]])
    second = engine.clipped_sum(others, labels[[1, 1, 5]], "softmax", 0.05, part=torch.arange(3) == 2)
    assert all(torch.equal(first[key], second[key]) for key in first)


class Remembering(nn.Module):
    """State wherever a network keeps it: an attribute, a list, a buffer."""

    def __init__(self):
        super().__init__()
        self.out, self.mean, self.seen = nn.Linear(6, CLASSES), 0.0, []
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x):
        self.mean = self.mean + x.detach().mean()
        self.seen.append(x.detach().sum())
        self.count += 1
        return self.out(x - self.mean - sum(self.seen) - self.count)


def test_nothing_that_a_network_keeps_reaches_another_record():
    torch.manual_seed(0)
    network, records, labels = Remembering(), torch.randn(5, 6), torch.arange(5) % CLASSES
    engine = OneByOne(network)
    each = [engine.clipped_sum(records[i : i + 1], labels[i : i + 1], "softmax", 0.05) for i in range(5)]
    for order in (torch.arange(5), torch.tensor([4, 2, 0, 1, 3])):
        found = engine.clipped_sum(records[order], labels[order], "softmax", 0.05)
        for key, value in found.items():
            assert torch.allclose(value, sum(one[key] for one in each), rtol=1e-12), key
    assert not network.count and network.mean == 0.0 and not network.seen


def test_a_broken_record_takes_no_part_and_a_layer_that_mixes_is_refused():
    network, records, labels = made("positions")
    without = OneByOne(network).clipped_sum(records[1:], labels[1:], "softmax", 0.1)
    records[0] = math.nan
    found = OneByOne(network).clipped_sum(records, labels, "softmax", 0.1)
    assert all(torch.equal(found[key], without[key]) for key in without)
    assert OneByOne(network).micro_batch(records[:3]) == 42
    with pytest.raises(StudyError, match="mixes the records"):
        OneByOne(nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3)))


def test_contributions_are_measured_here_too(monkeypatch):
    network, records, labels = made("positions")
    right = one_by_one.clipping_factors
    monkeypatch.setattr(one_by_one, "clipping_factors", lambda *given: 1.01 * right(*given))
    with pytest.raises(RuntimeError, match="a record contributes more than its bound"):
        OneByOne(network).clipped_sum(records, labels, "softmax", 1e-3)


def test_no_record_gives_zeros():
    network, records, labels = made("positions")
    found = OneByOne(copy.deepcopy(network)).clipped_sum(records[:0], labels[:0], "softmax", 1.0)
    assert len(found) == 4 and all(value.dtype == torch.float64 and not value.any() for value in found.values())
