"""Clipped contributions are no longer than they may be, and none moves a sum of many by more in spite of rounding."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from dpstudy.methods import network_dpsgd, network_run
from dpstudy.methods.network_run import NetworkRun
from dpstudy.methods.problem import Problem
from dpstudy.methods.ranks import Ranks
from dpstudy.methods.record_gradients import RecordGradients
from dpstudy.methods.record_sums import (
    _BLOCK,
    clipped_for,
    clipping_factors,
    norm_roundings,
    squared_lengths,
    weighted_sum,
)
from dpstudy.models import lenet, networks
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.noise import NoiseSource

MANY, BLOCK = 1_300_000, 8192
TINY = 1e-21  # its square is lost in float32


def exact(values: torch.Tensor) -> float:
    return math.fsum((values.double() ** 2).flatten().tolist())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [1, 27, 63, 64, 65, 576, 4608, 100_003])
def test_squared_lengths_are_never_below_the_exact_ones(size, dtype):
    torch.manual_seed(size)
    rows = [torch.randn(size), torch.rand(size), *(torch.full((size,), value) for value in (0.3, 1 / 3, 1 + 2**-12))]
    rows += [TINY * torch.randn(size), torch.cat([torch.ones(1), torch.full((size - 1,), 2.0**-13)])]
    found = squared_lengths(torch.stack(rows).to(dtype))
    assert found.dtype == torch.float64
    for row, square in zip(rows, found.tolist(), strict=True):
        assert exact(row.to(dtype)) <= square <= exact(row.to(dtype)) * (1 + 1e-11)


def test_small_numbers_after_large_ones_count():
    """Each is lost in a float32 sum that has begun with a large one: of 512 x 4,608 the norm came out 0.9 % too low."""
    values = torch.full((512 * 4608,), 2.0**-12.01)
    values[:8] = 1
    square = float((values.double() ** 2).sum())
    assert square <= float(squared_lengths(values)) <= square * (1 + 1e-11)


def test_factors_never_exceed_the_bound():
    norms = torch.rand(10_000, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * 3
    assert bool((clipping_factors(norms, 0.7) * norms <= 0.7).all())
    assert clipping_factors(torch.tensor([0.0, 0.7, math.nan, math.inf]).double(), 0.7).tolist()[::3] == [1.0, 0.0]
    assert clipping_factors(torch.tensor([math.nan]).double(), math.inf).tolist() == [0.0]


class Sum(nn.Module):
    """Scores that weigh all of a map alike: gradients of the filters are alike, where rounding is at its worst."""

    def __init__(self, classes):
        super().__init__()
        self.classes = classes

    def forward(self, maps):
        return maps.flatten(2).sum(2)[:, : self.classes]


@pytest.mark.parametrize("filled", [torch.randn, torch.rand, torch.ones])
@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (lambda: nn.Conv2d(512, 512, 3), (512, 4, 4)),  # gradients of 512 x 4,608 numbers
        (lambda: nn.Conv2d(512, 512, 3, groups=2), (512, 4, 4)),
        (lambda: nn.Sequential(nn.Flatten(), nn.Linear(40_000, 64), nn.Unflatten(1, (64, 1, 1))), (40_000, 1, 1)),
        (lambda: nn.ConvTranspose2d(512, 256, 3), (512, 2, 2)),  # without a rule of its own
    ],
)
def test_gradients_of_large_layers_are_clipped_to_the_norm(layer, shape, filled):
    torch.manual_seed(0)
    engine, norm = RecordGradients(nn.Sequential(layer(), Sum(40))), 1e-3
    records, labels = filled(2, *shape), torch.arange(2)
    for part in torch.eye(2):
        found = engine.clipped_sum(records, labels, "softmax", norm, part=part)
        length = math.sqrt(sum(float(value.square().sum()) for value in found.values()))
        assert norm * (1 - 1e-9) < length <= norm


def contributions(kind: str, dim: int) -> torch.Tensor:
    rng = np.random.default_rng(dim)
    if kind == "random":
        return torch.from_numpy(rng.uniform(1, 2, (MANY, dim)).astype(np.float32))
    rows = rng.uniform(1, 2, (1 if kind == "equal" else 2, dim)).astype(np.float32)
    return torch.from_numpy(rows).repeat(MANY // len(rows), 1)


@pytest.mark.parametrize("dim", [5, 10, 50])
@pytest.mark.parametrize("kind", ["equal", "half and half", "random"])
def test_the_first_of_many_records_moves_a_sum_by_the_norm_at_most(kind, dim):
    """All blocks of the sum shift when it is taken away."""
    gradients, norm = contributions(kind, dim), clipped_for(0.3, MANY, BLOCK, [torch.Size([dim])])
    factors = clipping_factors(squared_lengths(gradients).sqrt(), norm)
    sums = []
    for first in (0, 1):
        total = torch.zeros(dim, dtype=torch.float64)
        for start in range(first, MANY, BLOCK):
            total += weighted_sum(factors[start : start + BLOCK], gradients[start : start + BLOCK])
        sums.append(total)
    assert 0.3 * (1 - 1e-5) < float((sums[0] - sums[1]).norm()) <= 0.3


def test_what_many_records_cost_of_the_norm():
    """The margin of the module's text, and of the largest set that anybody trains on, taken one by one."""
    shapes = [value.shape for value in networks.build("wrn-16-4", (3, 32, 32), 10).parameters()]
    assert 1 - clipped_for(1.0, 50_000, 128, shapes) == pytest.approx(2e-7, rel=0.15)
    assert 1 - clipped_for(1.0, 1_281_167, 1, shapes) == pytest.approx(2 * 1_281_167**2 * 2.0**-53, rel=0.02)
    assert clipped_for(1.0, 100, 64, shapes, 8) < clipped_for(1.0, 100, 64, shapes) < clipped_for(1.0, 100, 64, []) < 1


def test_squares_meet_no_more_roundings_than_are_counted():
    """Of the longest way that one goes: block by block, row by row, tensor by tensor."""
    for shape in ((), (5,), (3, 2, 7, 7), (512, 4608), (1, 5000)):
        shape = torch.Size(shape)
        rows, numbers = shape[:1].numel(), shape.numel()
        longest = min(numbers, _BLOCK) + math.ceil(numbers / rows / _BLOCK) + rows
        assert longest <= norm_roundings([shape]) <= 3 * _BLOCK + numbers // _BLOCK + rows
    assert norm_roundings([torch.Size([4, 4])] * 100) - norm_roundings([torch.Size([4, 4])]) >= 100


def flat(layers):
    """Weights of 0: then the gradient of a record is the same at every place to the last bit, and sums are tested."""

    def build(architecture, shape, classes):
        network = nn.Sequential(nn.Flatten(), *layers(math.prod(shape), classes))
        for value in network.parameters():
            nn.init.zeros_(value)
        return network

    return build


LAYERS = {
    "one position": lambda dim, classes: [nn.Linear(dim, classes)],
    "positions": lambda dim, classes: [Twice(), nn.Linear(dim, classes), Last()],
}


class Twice(nn.Module):
    def forward(self, features):
        return torch.stack([features, features.flip(1)], 1)


class Last(nn.Module):
    def forward(self, positions):
        return positions.sum(1)


@pytest.mark.parametrize("dim", [5, 10, 50])
@pytest.mark.parametrize("kind", ["equal", "half and half", "random"])
@pytest.mark.parametrize("layers", LAYERS)
def test_the_first_of_many_records_moves_the_sum_of_a_step_by_the_norm_at_most(layers, kind, dim, monkeypatch):
    """As above, through the engine: what is given to the noise source."""
    monkeypatch.setattr(lenet, "build", flat(LAYERS[layers]))
    features, sums = contributions(kind, dim).numpy(), []
    options = {"learning_rate": 1.0, "clipping_norm": 0.3, "steps": 1, "micro_batch": BLOCK}
    parameters = network_dpsgd.Parameters(network="lenet", **options)
    problem = Problem(MANY, (1, 1, dim), 2, Budget("2", 1e-9))
    for first in (0, 1):
        own = features[first:]
        data = network_dpsgd.prepare([(own, np.zeros(len(own), int))], parameters, problem)
        source = NoiseSource("secure", "sums")
        run = NetworkRun(data, parameters, problem, NoiseSource("seeded", "sums"), Ranks())
        sums.append(run._clipped_sums(None, source))
    moved = math.sqrt(sum(float((sums[0][key] - sums[1][key]).square().sum()) for key in sums[0]))
    assert 0.3 * (1 - 1e-4) < moved <= 0.3


def test_a_step_clips_with_the_margin_of_its_own_sum(monkeypatch):
    asked = []
    monkeypatch.setattr(network_run, "clipped_for", lambda *facts: asked.append(facts) or 1e-3)
    parameters = network_dpsgd.Parameters(network="lenet", learning_rate=1.0, clipping_norm=0.3, steps=1, micro_batch=7)
    problem = Problem(20, (1, 28, 28), 2, Budget("2", 1e-3), unit_records=3)
    data = network_dpsgd.prepare([(np.ones((1, 784), np.float32), np.zeros(1, int))], parameters, problem)
    run = NetworkRun(data, parameters, problem, NoiseSource("seeded", "sums"), Ranks())
    sums = run._clipped_sums(None, NoiseSource("secure", "sums"))
    ((norm, most, size, shapes, processes),) = asked
    assert (norm, most, size, processes) == (0.3, 63, 7, 1)
    assert sum(shape.numel() for shape in shapes) == sum(value.size for value in run.model().state.values())
    assert math.sqrt(sum(float(value.square().sum()) for value in sums.values())) == pytest.approx(1e-3, rel=1e-5)


@pytest.mark.parametrize(("mode", "dtype"), [("secure", np.float64), ("seeded", np.float32)])
def test_sums_meet_secure_noise_unrounded(mode, dtype, monkeypatch):
    given = []

    class Watched(NoiseSource):
        def released(self, name, query, *more, **keywords):
            given.append(query.dtype)
            return super().released(name, query, *more, **keywords)

    parameters = network_dpsgd.Parameters(network="lenet", learning_rate=1.0, clipping_norm=0.3, steps=1)
    problem = Problem(20, (1, 28, 28), 2, Budget("2", 1e-3))
    rows = np.zeros((20, 784), np.float32), np.zeros(20, int)
    data, plan = network_dpsgd.prepare([rows], parameters, problem), network_dpsgd.plan(parameters, problem)
    model = network_dpsgd.fit(data, parameters, problem, plan, Watched(mode, "sums")).model
    assert len(given) == 10 and set(given) == {np.dtype(dtype)}
    assert {value.dtype for value in model.state.values()} == {np.dtype(np.float32)}


def test_sums_over_processes_stay_unrounded(monkeypatch):
    reduced = []
    monkeypatch.setattr("dpstudy.methods.ranks.distributed.reduce", lambda flat, to: reduced.append(flat.dtype))
    value = torch.tensor([1 / 3], dtype=torch.float64)
    Ranks(0, 2).summed({"weight": value})
    assert reduced == [torch.float64] and float(value) == 1 / 3
