"""Every network is tested for records that touch each other before it is trained, and what fails is a sentence."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from dpstudy import fit
from dpstudy.core.errors import StudyError
from dpstudy.methods import network_check, network_dpsgd, network_run
from dpstudy.methods.network_check import check_network
from dpstudy.methods.network_dpsgd import BATCHED, TESTED
from dpstudy.methods.problem import Problem
from dpstudy.methods.ranks import Ranks
from dpstudy.methods.record_gradients import RecordGradients
from dpstudy.models import lenet, networks
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.noise import NoiseSource

SHAPE, CLASSES = (1, 8, 8), 3


class Own(nn.Module):
    """A network of one's own, with an operation in its middle."""

    def __init__(self, operation):
        super().__init__()
        self.first, self.out, self.operation = nn.Conv2d(1, 4, 3, padding=1), nn.Linear(4 * 64, CLASSES), operation

    def forward(self, x):
        return self.out(self.operation(torch.tanh(self.first(x))).flatten(1))


def groups_of_four(x):
    """The standard deviation within groups of four images, as some discriminators have it."""
    size = 4 if len(x) % 4 == 0 else 1
    return x + x.reshape(-1, size, *x.shape[1:]).var(1, correction=0).repeat_interleave(size, 0)


class Remembering:
    """Running means in a plain attribute."""

    mean = 0.0

    def __call__(self, x):
        self.mean = 0.9 * self.mean + 0.1 * x.detach().mean()
        return x - self.mean


class FirstBatch:
    """Constants that the first batch decides, as some normalisations start."""

    mean = None

    def __call__(self, x):
        self.mean = x.detach().mean() if self.mean is None else self.mean
        return x - self.mean


class Buffered(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x):
        self.seen += 1
        return x


def equal_ones(x):
    """An image counts as often as it is there."""
    flat = x.detach().flatten(1)
    return x * (torch.cdist(flat, flat) == 0).sum(1).reshape(-1, 1, 1, 1)


def hidden(x):
    """Nothing, but a gradient."""
    return x - x.detach()


MIXING = {
    "the mean": lambda x: x - x.mean(0),
    "the mean, without a gradient": lambda x: x - x.mean(0).detach(),
    "a hundred thousandth of the mean": lambda x: x - 1e-5 * x.mean(0),
    "the neighbour": lambda x: x + 0.1 * x.roll(1, 0),
    "the order": lambda x: x.sort(0).values,
    "the largest": lambda x: x / x.abs().amax().clamp_min(1e-3),
    "groups of four": groups_of_four,
    "large batches alone": lambda x: x - x.mean(0) if len(x) > 8 else x,
    "float32 alone": lambda x: x - x.mean(0) if x.dtype == torch.float32 else x,
    "size of the batch": lambda x: x / len(x),
    "place in the batch": lambda x: x * (1 + torch.arange(len(x)).reshape(-1, 1, 1, 1)),
    "equal images": equal_ones,
    "size of a large batch": lambda x: x / (1 + max(0, len(x) - 8)),
    "memory": Remembering(),
    "the first batch": FirstBatch(),
    "buffers": Buffered(),
    "chance": lambda x: functional.dropout(x, 0.1),
}
GRADIENTS = {  # in these alone
    "the gradient alone": lambda x: x + hidden(x.mean(0)),
    "a hundredth of the gradient in large batches": lambda x: x + 1e-2 * hidden(x.mean(0)) * (len(x) > 8),
    "the gradient's size in large batches": lambda x: x + hidden(x) * (len(x) > 8),
}
INPUTS = {  # what the network does with its images, before any layer
    "enormous images": lambda x: x - x.mean(0) if float(x.detach().abs().max()) > 100 else x,
    "blank images": lambda x: x + x.mean(0) * (x.flatten(1).abs().amax(1) == 0).any(),
    "dark images": lambda x: x * (1 + ((0 < x.std((1, 2, 3))) & (x.std((1, 2, 3)) < 0.01)).any()),
    "bright images": lambda x: x * (1 + (x.flatten(1).amin(1) > 0).any()),
    "grey images": lambda x: x * (1 + ((x.std((1, 2, 3)) == 0) & (x.mean((1, 2, 3)) != 0)).any()),
}


class Early(Own):
    def forward(self, x):
        return self.out(torch.tanh(self.first(self.operation(x))).flatten(1))


def made(name):
    torch.manual_seed(0)
    return Early(INPUTS[name]) if name in INPUTS else Own((MIXING | GRADIENTS)[name])


@pytest.mark.parametrize("name", [*MIXING, *GRADIENTS, *INPUTS])
def test_what_joins_records_is_found(name):
    with pytest.raises(StudyError, match="network 'own': .*(without other records|asked again|changes its state)"):
        check_network("own", made(name), SHAPE, CLASSES, micro_batch=16)


@pytest.mark.parametrize("name", [*MIXING, *INPUTS])
def test_it_is_found_beside_a_parameter_outside_layers_too(name):
    """There gradients are taken apart, and join nothing: it is the scores that tell. Chance and state fail anyway."""

    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale, self.inner = nn.Parameter(torch.ones(1)), made(name)

        def forward(self, x):
            return self.scale * self.inner(x)

    with pytest.raises(StudyError, match="network 'own': "):
        check_network("own", Scaled(), SHAPE, CLASSES, micro_batch=16)


@pytest.mark.parametrize(
    "name", ["tanh-28", "lenet", "wrn-10-1", "wrn-10-1-plain", "scatter-28", "timm:test_vit", "equivariant-resnet-9"]
)
def test_networks_that_come_with_the_library_pass(name):
    shape = {
        "scatter-28": (81, 7, 7),
        "wrn-10-1": (3, 8, 8),
        "timm:test_vit": (3, 32, 32),
        "equivariant-resnet-9": (3, 16, 16),
    }.get(name, (1, 28, 28))
    torch.manual_seed(0)
    network = networks.build(name, shape, 10)
    before = {key: value.clone() for key, value in network.state_dict().items()}
    facts = {"channels_last": networks.is_laid_channels_last(name), "copies": 2}
    check_network(name, network, shape, 10, micro_batch=8, **facts)
    check_network(name, network, shape, 10, one_by_one=True, **facts)
    assert all(torch.equal(value, before[key]) for key, value in network.state_dict().items())


@pytest.mark.parametrize(
    "operation",
    [
        lambda x: x @ torch.eye(8, device=x.device) + torch.linspace(0, 1, 8),
        lambda x: x.float().tanh().to(x.dtype),
        lambda x: x.to(torch.float32) if x.dtype == torch.float32 else x,
    ],
)
def test_numbers_that_the_code_makes_on_its_way_are_let_be(operation):
    check_network("own", Own(operation), SHAPE, CLASSES, micro_batch=16)
    check_network("own", Own(operation), SHAPE, CLASSES, one_by_one=True)
    assert torch.get_default_dtype() == torch.float32


def usual_images_alone(x):
    spread = x.flatten(1).std(1)
    return x.lerp(x.roll(1, 0), 0.1) if bool(((spread > 0.7) & (spread < 2)).all()) else x


def test_records_that_touch_each_other_among_usual_images_alone_are_found():
    with pytest.raises(StudyError, match="without other records"):
        check_network("own", Early(usual_images_alone), SHAPE, CLASSES)


@pytest.mark.parametrize("classes", [1, 3])
def test_a_gradient_that_softmax_does_not_see_counts(classes):
    """The loss may be sigmoid's: a common shift of all scores of a record is not lost on it."""

    class Shifted(nn.Module):
        def __init__(self):
            super().__init__()
            self.out = nn.Linear(5, classes)

        def forward(self, x):
            scores = self.out(x)
            shift = scores.mean((0, 1))
            return scores + (shift - shift.detach())

    with pytest.raises(StudyError, match="without other records"):
        check_network("own", Shifted(), (5,), classes)


def test_a_search_pays_for_the_test_once(monkeypatch):
    """But what another definition builds under the same name is another network."""
    passes, clipped_sum = [], RecordGradients.clipped_sum
    monkeypatch.setattr(
        RecordGradients, "clipped_sum", lambda self, *given: passes.append(1) or clipped_sum(self, *given)
    )
    monkeypatch.setattr(network_check, "_checked", set())

    def passed(**options):
        before = len(passes)
        trained(**options)
        return len(passes) - before

    own_network(monkeypatch, lambda: Own(nn.Identity()))
    assert [passed(), passed(), passed(learning_rate=0.2)] == [4 + 3 + 2, 2, 2]
    assert passed(micro_batch=7) == 4 + 3 + 2 * 9
    own_network(monkeypatch, lambda: Own(nn.Identity()))
    assert passed() == 4 + 3 + 2
    own_network(monkeypatch, lambda: made("the mean"))
    with pytest.raises(StudyError, match="without other records"):
        trained()


ROWS = np.random.default_rng(0).standard_normal((60, 64)).astype(np.float32), np.arange(60) % CLASSES
OPTIONS = {"learning_rate": 0.1, "clipping_norm": 1.0, "steps": 2, "network": "lenet"}


def trained(**options):
    facts = {"classes": CLASSES, "epsilon": 1, "delta": 1e-3, "shape": SHAPE}
    return fit("network_dpsgd", *ROWS, **facts | OPTIONS | options)


def own_network(monkeypatch, build):
    """As if a module of one's own stood in models/networks.py, under a name of its own."""
    monkeypatch.setattr(lenet, "build", lambda architecture, shape, classes: build())
    monkeypatch.setattr(networks, "is_shipped", lambda architecture: False)
    monkeypatch.setattr(networks, "is_laid_channels_last", lambda architecture: False)


@pytest.mark.parametrize("record_by_record", [False, True])
@pytest.mark.parametrize("known", [True, False])
def test_no_network_is_trained_that_was_not_tested(known, record_by_record, monkeypatch):
    """Whoever wrote it, whatever it is called."""
    own_network(monkeypatch, lambda: made("the mean"))
    if known:
        monkeypatch.setattr(networks, "is_shipped", lambda architecture: True)
    with pytest.raises(StudyError, match="network 'lenet': .* without other records"):
        trained(record_by_record=record_by_record)


def test_the_ledger_says_whether_a_network_was_only_tested(monkeypatch):
    own_network(monkeypatch, lambda: Own(nn.Identity()))
    tested, alone = trained(), trained(record_by_record=True)
    assert TESTED.format("lenet") in tested.ledger["not_accounted"]
    assert TESTED.format("lenet") not in alone.ledger["not_accounted"]
    assert tested.ledger["epsilon"] == alone.ledger["epsilon"] and alone.ledger["guarantee"] == "proved"
    for key, value in tested.model.state.items():
        assert np.allclose(value, alone.model.state[key], atol=1e-6), key


@pytest.mark.parametrize(
    ("network", "shipped"),
    [
        (name, True)
        for name in ("tanh-28", "scatter-32-smaller", "lenet", "wrn-16-4", "wrn-16-4-plain", "equivariant-resnet-9")
    ]
    + [(name, False) for name in ("nf-resnet-50", "nfnet-f0", "timm:resnet18+gn")],
)
def test_networks_of_others_are_named_in_the_ledger(network, shipped):

    def said(epsilon="1", secure=False, **options):
        options |= {"network": network, "learning_rate": 1.0, "clipping_norm": 1.0, "steps": 1}
        problem = Problem(100, (3, 32, 32), 10, Budget(epsilon, 1e-3), secure=secure)
        return network_dpsgd.plan(network_dpsgd.Parameters(**options), problem).not_accounted

    assert said() == (() if shipped else (TESTED.format(network),))
    assert said(secure=True) == (*said(), BATCHED)  # in float32 beside others
    assert said(record_by_record=True) == said("inf") == said(record_by_record=True, secure=True) == ()


def test_a_name_that_somebody_adds_is_not_shipped():
    assert not networks.is_shipped("mlp") and not networks.is_laid_channels_last("mlp")


def test_record_by_record_is_not_compiled():
    with pytest.raises(StudyError, match="record_by_record and compile do not go together"):
        network_dpsgd.Parameters(**OPTIONS, record_by_record=True, compile=True)


class Failing(nn.Module):
    """Works by itself, and on few images, and fails otherwise."""

    def __init__(self, fails):
        super().__init__()
        self.out, self.fails = nn.Linear(64, CLASSES), fails

    def forward(self, x):
        return self.fails(self.out(x.flatten(1)))


class Backwards(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        raise RuntimeError("no way back\nat all")


FAILURES = {
    "forward": (lambda x: x @ torch.zeros(4, 4).to(x), "fails .*shapes cannot be multiplied"),
    "backward": (Backwards.apply, r"fails \(no way back\)"),
    "two images": (lambda x: x.reshape(2, -1)[:, :CLASSES], r"fails \(shape '\[2, -1\]' is invalid"),
    "Python": (lambda x: {}["key"], "fails .*key"),
    "no scores": (lambda x: (x, x), "gives tuple for 1 images"),
    "other classes": (lambda x: x[:, :2], "gives 2 scores where there are 3 classes"),
    "scores of positions": (lambda x: x[..., None], r"gives scores of shape \(1, 3, 1\)"),
}


@pytest.mark.parametrize("record_by_record", [False, True])
@pytest.mark.parametrize("name", FAILURES)
def test_what_a_network_raises_is_one_sentence(name, record_by_record, monkeypatch):
    fails, words = FAILURES[name]
    own_network(monkeypatch, lambda: Failing(fails))
    with pytest.raises(StudyError, match=f"network 'lenet': .*{words}") as raised:
        trained(record_by_record=record_by_record, micro_batch=3)
    assert "\n" not in str(raised.value)


class Viewing(nn.Module):
    """The idiom of countless tutorials: it needs images and maps in the layout that they have by themselves."""

    layouts: list = []

    def __init__(self):
        super().__init__()
        self.first, self.out, self.gain = nn.Conv2d(2, 4, 3, padding=1), nn.Linear(4 * 32, CLASSES), None

    def forward(self, x):
        maps = self.first(x)
        self.layouts += [x.is_contiguous(), maps.is_contiguous()]
        return self.out(maps.view(len(x), -1))


def test_a_network_of_ones_own_sees_images_as_it_would_by_itself(monkeypatch):
    own_network(monkeypatch, Viewing)
    for options in ({}, {"record_by_record": True}, {"augmentation": {"multiplicity": 2, "pad": 1}}):
        assert math.isfinite(trained(shape=(2, 4, 8), **options).ledger["epsilon"])
    assert Viewing.layouts and all(Viewing.layouts)


class Kept:
    """A checkpoint."""

    def __init__(self, *kept):
        self.load = lambda: kept


def test_a_resumed_training_is_tested_too(monkeypatch):
    parameters, problem = network_dpsgd.Parameters(**OPTIONS), Problem(60, SHAPE, CLASSES, Budget("1", 1e-3))
    data, plan = network_dpsgd.prepare([ROWS], parameters, problem), network_dpsgd.plan(parameters, problem)
    own_network(monkeypatch, lambda: Own(nn.Identity()))
    source = NoiseSource("seeded", "resumed")
    run = network_run.NetworkRun(data, parameters, problem, source, Ranks())
    run.step(None, plan, source)
    kept = Kept(*run.state(source))
    own_network(monkeypatch, lambda: made("the mean"))
    with pytest.raises(StudyError, match="without other records"):
        network_dpsgd.fit(data, parameters, problem, plan, NoiseSource("seeded", "resumed"), keeper=kept)


def test_there_is_one_door():
    """Searches, audits and trainings all come by NetworkRun, which has its network tested: nothing else makes an
    engine."""
    doors = {"network_run.py", "network_check.py"}
    for path in Path(network_run.__file__).parents[1].rglob("*.py"):
        makes = [name for name in ("RecordGradients(", "OneByOne(") if name in path.read_text(encoding="utf-8")]
        assert not makes or path.name in doors, path
