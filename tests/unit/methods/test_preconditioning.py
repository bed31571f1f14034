"""Public maps before the clip: gradients, steps and weights are those of a loop with matrices."""

import copy
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from dpstudy import methods
from dpstudy.core.errors import StudyError
from dpstudy.methods import network_dpsgd
from dpstudy.methods.network_run import NetworkRun
from dpstudy.methods.preconditioning import Preconditioning, drawn, precondition
from dpstudy.methods.problem import Problem
from dpstudy.methods.ranks import current
from dpstudy.methods.record_gradients import RecordGradients
from dpstudy.models.preconditioned import Preconditioned, merged
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.noise import NoiseSource

SHAPE, CLASSES = (2, 8, 8), 3
RULE = Preconditioning(damping=0.1, pictures=40)
OPTIONS = {"network": "wrn-10-1-gn", "learning_rate": 0.5, "clipping_norm": 0.3, "steps": 2, "preconditioning": {}}


def network() -> nn.Module:
    torch.manual_seed(3)
    layers = nn.Conv2d(2, 4, 3, stride=2, padding=1), nn.Tanh(), nn.Conv2d(4, 5, 2, bias=False), nn.Tanh(), nn.Flatten()
    return nn.Sequential(*layers, nn.Linear(45, CLASSES)).double()


def test_the_network_computes_what_it_did_and_is_itself_again():
    plain = network()
    mapped = copy.deepcopy(plain)
    names = precondition(mapped, RULE, SHAPE, CLASSES)
    assert names == ["0", "2", "5"] and sum(isinstance(one, Preconditioned) for one in mapped.modules()) == 3
    x = torch.randn(6, *SHAPE, dtype=torch.float64)
    assert torch.allclose(mapped(x), plain(x), atol=1e-9)
    again = merged(mapped, dict(mapped.named_parameters()))
    assert again.keys() == dict(plain.named_parameters()).keys()
    for name, value in plain.named_parameters():
        assert torch.allclose(again[name], value, atol=1e-9), name


def test_what_maps_are_not_known_for_stays_as_it_is():
    """Grouped, mirrored and word-padded convolutions, a layer of another kind, and one that is not trained."""
    own = [nn.Conv2d(2, 4, 3, padding="same"), nn.Conv2d(4, 4, 3, padding=1, groups=2)]
    own += [nn.Conv2d(4, 4, 3, padding=1, padding_mode="reflect"), nn.GroupNorm(2, 4), nn.Conv2d(4, 2, 3, padding=1)]
    own[-1].requires_grad_(False)
    plain = nn.Sequential(*own, nn.Flatten(), nn.Linear(128, CLASSES))
    assert precondition(plain, RULE, SHAPE, CLASSES) == ["6"]
    assert [type(one) for one in plain][:5] == [type(one) for one in own]


class Last(nn.Module):
    """Maps with their channels last, as ConvNeXt's linear layers have them."""

    def forward(self, x):
        return x.movedim(1, -1)


def test_linear_layers_on_maps_see_places_as_rows():
    torch.manual_seed(5)
    plain = nn.Sequential(Last(), nn.Linear(2, 6), nn.Tanh(), nn.Flatten(), nn.Linear(384, CLASSES)).double()
    mapped = copy.deepcopy(plain)
    assert precondition(mapped, RULE, SHAPE, CLASSES) == ["1", "4"] and mapped[1].left.shape == (6, 6)
    x = torch.randn(3, *SHAPE, dtype=torch.float64)
    assert torch.allclose(mapped(x), plain(x), atol=1e-9)


def by_hand(plain: nn.Module, maps: dict, x: torch.Tensor, labels: torch.Tensor, norm: float) -> dict:
    """The clipped sum of mapped gradients, a record at a time, each parameter by its name in the plain network."""
    total = {}
    for row in range(len(x)):
        plain.zero_grad()
        functional.cross_entropy(plain(x[row : row + 1]), labels[row : row + 1]).backward()
        own = {}
        for name, value in plain.named_parameters():
            layer, _, part = name.rpartition(".")
            right, left = maps[layer]
            flat = left @ value.grad.flatten(1) @ right if part == "weight" else left @ value.grad
            own[name] = flat.view_as(value)
        length = math.sqrt(sum(float(value.square().sum()) for value in own.values()))
        for name, value in own.items():
            total[name] = total.get(name, 0) + value * min(1.0, norm / length)
    return total


@pytest.mark.parametrize("norm", [0.2, math.inf])
def test_clipped_sums_are_those_of_mapped_gradients(norm):
    plain = network()
    mapped = copy.deepcopy(plain)
    precondition(mapped, RULE, SHAPE, CLASSES)
    maps = {name: (one.right, one.left) for name, one in mapped.named_modules() if isinstance(one, Preconditioned)}
    x, labels = torch.randn(7, *SHAPE, dtype=torch.float64), torch.arange(7) % CLASSES
    slow = by_hand(plain, maps, x, labels, norm)
    fast = RecordGradients(mapped).clipped_sum(x, labels, "softmax", norm)
    for name, value in slow.items():
        layer, _, part = name.rpartition(".")
        assert torch.allclose(fast[f"{layer}.base.{part}"].double().view_as(value), value, rtol=1e-5, atol=1e-8), name


def test_a_released_gradient_moves_the_weights_as_it_is():
    """W of the network without maps after a step is W less the step, not the step mapped once more."""
    plain = network()
    mapped = copy.deepcopy(plain)
    precondition(mapped, RULE, SHAPE, CLASSES)
    steps = {name: torch.randn_like(value) for name, value in mapped.named_parameters()}
    with torch.no_grad():
        for name, value in mapped.named_parameters():
            layer, _, part = name.rpartition(".base.")
            value -= mapped.get_submodule(layer).own_step(part, steps[name])
    again = merged(mapped, dict(mapped.named_parameters()))
    for name, value in plain.named_parameters():
        layer, _, part = name.rpartition(".")
        moved = value - steps[f"{layer}.base.{part}"].view_as(value)
        assert torch.allclose(again[name], moved, atol=1e-9), name


def test_maps_are_the_damped_inverse_roots_of_the_moments_of_drawn_pictures():
    plain = network()
    mapped = copy.deepcopy(plain)
    precondition(mapped, RULE, SHAPE, CLASSES)
    x = drawn(RULE.pictures, SHAPE).double()
    patches = functional.unfold(x, 3, padding=1, stride=2).movedim(1, -1).flatten(0, 1)
    moments = patches.T @ patches
    values, vectors = torch.linalg.eigh(moments / (moments.trace() / len(moments)))
    root = vectors @ torch.diag((values + RULE.damping) ** -0.5) @ vectors.T
    root = root / math.sqrt(float((root @ root).trace()) / len(root))
    assert torch.allclose(mapped[0].right, root, atol=1e-8)
    assert float((mapped[5].left @ mapped[5].left).trace()) / CLASSES == pytest.approx(1)


def test_drawn_pictures_have_the_spectrum_of_photographs_and_are_always_the_same():
    found = drawn(400, (1, 32, 32))
    assert torch.equal(found, drawn(400, (1, 32, 32))) and float(found.std()) == pytest.approx(1, rel=1e-4)
    power = np.abs(np.fft.fft2(found.numpy()[:, 0])).__pow__(2).mean(0)
    assert power[0, 2] / power[0, 8] == pytest.approx(16, rel=0.3) and power[0, 0] < 1e-6


def trained(rows=300, **changes):
    parameters = methods.parameters("network_dpsgd", OPTIONS | changes)
    problem = Problem(rows, (1, 8, 8), CLASSES, Budget("4", 1e-5))
    generator = np.random.default_rng(0)
    batch = generator.standard_normal((rows, 64)).astype(np.float32), generator.integers(CLASSES, size=rows)
    data = network_dpsgd.prepare([batch], parameters, problem)
    plan = network_dpsgd.plan(parameters, problem)
    return network_dpsgd.fit(data, parameters, problem, plan, NoiseSource("seeded", "a")).model, plan


def test_a_training_releases_the_plain_network_under_the_same_ledger():
    (mapped, plan), (plain, other) = trained(), trained(preconditioning=None)
    assert plan.events == other.events and plan.noise == other.noise
    assert mapped.state.keys() == plain.state.keys()
    assert {k: v.shape for k, v in mapped.state.items()} == {k: v.shape for k, v in plain.state.items()}
    assert any(not np.array_equal(mapped.state[key], plain.state[key]) for key in plain.state)


def test_what_keys_noise_says_preconditioning_where_there_is_some():
    own = methods.parameters("network_dpsgd", OPTIONS)
    without = replace(own, preconditioning=None)
    assert "preconditioning" not in repr(without) and "preconditioning=Preconditioning(damping=0.01" in repr(own)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"preconditioning": {"damping": 0}}, "preconditioning: damping 0: must be a number above 0"),
        ({"optimiser": "adam"}, "preconditioning goes with optimiser sgd or momentum"),
        ({"start": "cnn", "trained": "biases"}, "preconditioning is for all layers"),
    ],
)
def test_what_it_cannot_do_is_said(changes, sentence):
    with pytest.raises(StudyError, match=sentence):
        methods.parameters("network_dpsgd", OPTIONS | changes)


def test_a_network_without_a_plain_layer_is_told():
    with pytest.raises(StudyError, match="no plain linear layer or convolution"):
        precondition(nn.Sequential(nn.Flatten()), RULE, SHAPE, CLASSES)


@pytest.mark.parametrize("mode", ["seeded", "secure"])
def test_a_killed_training_goes_on_with_the_network_that_it_had(mode):
    """Maps follow from the random start, which secure noise does not draw again."""
    problem = Problem(24, SHAPE, CLASSES, Budget("8", 1e-3), secure=mode == "secure")
    parameters = methods.parameters("network_dpsgd", OPTIONS | {"optimiser": "sgd", "micro_batch": 4})
    rng = np.random.default_rng(4)
    rows = rng.standard_normal((24, math.prod(SHAPE))).astype(np.float32), rng.integers(CLASSES, size=24)
    data, plan = network_dpsgd.prepare([rows], parameters, problem), network_dpsgd.plan(parameters, problem)
    kept, scores = [], []

    class KilledError(Exception):
        pass

    class Keeper:
        def load(self):
            return kept[0] if kept else None

        def due(self, done):
            return True

        def save(self, tensors, facts):
            kept.append((tensors, facts))
            raise KilledError

    def note(step, model):
        scores.append(model.scores(rows[0]))

    options = {"monitor": note, "keeper": Keeper()}
    few = replace(parameters, curve_points=2)
    with pytest.raises(KilledError):
        network_dpsgd.fit(data, few, problem, plan, NoiseSource(mode, "killed"), **options)
    run = NetworkRun(data, few, problem, NoiseSource(mode, "killed"), current(), kept[0][1]["start"])
    run.restore(*kept[0], NoiseSource(mode, "killed"))
    np.testing.assert_allclose(run.model().scores(rows[0]), scores[0], atol=1e-4)
    fitted = network_dpsgd.fit(data, few, problem, plan, NoiseSource(mode, "killed"), **options)
    assert np.isfinite(fitted.model.scores(rows[0])).all()
