"""Clipped sums of a network's per-record gradients against a loop, a backward pass a record."""

import functools
import math

import pytest
import torch
from torch import nn
from torch.nn import functional

from dpstudy.core.errors import StudyError
from dpstudy.methods import layer_rules, tapped_pass
from dpstudy.methods.record_gradients import RecordGradients, record_losses
from dpstudy.models import networks, tanh_cnn, wide_resnet
from dpstudy.models.equivariant_conv import EquivariantConv2d
from dpstudy.models.frozen_norm import FrozenBatchNorm2d
from dpstudy.models.standardised_conv import ScaledConv2d, StandardisedConv2d

CLASSES = 4


class Branch(nn.Module):
    """A block with a gain of its own, which works in place on what its layer gave, as timm's do."""

    def __init__(self, channels):
        super().__init__()
        self.layer, self.gain = nn.Conv2d(channels, channels, 3, padding=1), nn.Parameter(torch.tensor(0.7))
        self.place = nn.Parameter(torch.randn(1, channels, 1, 8))

    def forward(self, x):
        y = self.layer(x)
        y.mul_(self.gain)
        return (x + y + self.place).relu_()


class Scale(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.factors = nn.Parameter(1 + 0.1 * torch.randn(channels))

    def forward(self, x):
        return x * self.factors


NETWORKS = {
    "linear": (lambda: nn.Sequential(nn.Flatten(), nn.Linear(2 * 8 * 8, CLASSES)), (2, 8, 8)),
    "no bias": (lambda: nn.Sequential(nn.Linear(6, 5, bias=False), nn.Tanh(), nn.Linear(5, CLASSES)), (6,)),
    "positions": (lambda: nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Flatten(), nn.Linear(15, CLASSES)), (3, 6)),
    "strided": (
        lambda: nn.Sequential(
            nn.Conv2d(2, 5, (3, 2), (2, 1), (1, 0), bias=False), nn.ReLU(),
            nn.Conv2d(5, 3, 3, dilation=2), nn.Flatten(), nn.Linear(9, CLASSES),
        ),
        (2, 9, 8),
    ),
    "group norm": (
        lambda: nn.Sequential(
            nn.Conv2d(2, 6, 3, padding=1), nn.GroupNorm(3, 6), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
            nn.Linear(6, CLASSES),
        ),
        (2, 8, 8),
    ),
    "one position": (
        lambda: nn.Sequential(nn.Conv2d(2, 6, 8), nn.Tanh(), nn.Flatten(), nn.Linear(6, CLASSES)),
        (2, 8, 8),
    ),
    "standardised": (
        lambda: nn.Sequential(
            StandardisedConv2d(2, 5, (3, 2), (2, 1), (1, 0)), nn.ReLU(),
            StandardisedConv2d(5, 3, 3, bias=False), nn.Flatten(), nn.Linear(30, CLASSES),
        ),
        (2, 8, 8),
    ),
    "grouped": (
        lambda: nn.Sequential(
            nn.Conv2d(2, 6, 3, padding=1, groups=2), nn.Tanh(), nn.Conv2d(6, 6, 3, 2, groups=3, bias=False), nn.Tanh(),
            ScaledConv2d(6, 4, 3, groups=2), nn.Flatten(), nn.Linear(4, CLASSES),
        ),
        (2, 8, 8),
    ),
    "shared over moves": (
        lambda: nn.Sequential(
            EquivariantConv2d(2, 2, 3, "d4"), nn.Tanh(), nn.MaxPool2d(2),
            EquivariantConv2d(16, 3, 3, "d4", "d4"), nn.Tanh(), EquivariantConv2d(24, 2, 1, "d2", "d4"),
            nn.Tanh(), nn.Flatten(), nn.Linear(8 * 16, CLASSES),
        ),
        (2, 8, 8),
    ),
    "scaled": (
        lambda: nn.Sequential(
            ScaledConv2d(2, 5, 3, 2, gamma=1.7, eps=1e-3, same=True), nn.Tanh(), ScaledConv2d(5, 4, (2, 3), same=True),
            nn.Tanh(), nn.Flatten(), nn.Linear(4 * 4 * 4, CLASSES),
        ),
        (2, 8, 7),
    ),
    "no rule": (
        lambda: nn.Sequential(
            nn.Conv2d(2, 3, 3, padding="same"), nn.PReLU(), nn.InstanceNorm2d(3, affine=True), nn.Flatten(),
            nn.LayerNorm(192), nn.Linear(192, 6), Scale(6), nn.Linear(6, CLASSES),
        ),
        (2, 8, 8),
    ),
    "no rule, other shapes": (
        lambda: nn.Sequential(
            nn.ConvTranspose2d(2, 3, 2, 2), nn.Tanh(), nn.Flatten(2), nn.Conv1d(3, 4, 5, 3), nn.RMSNorm(84), nn.Tanh(),
            nn.Flatten(), nn.Linear(4 * 84, CLASSES),
        ),
        (2, 8, 8),
    ),
    "own parameters": (
        lambda: nn.Sequential(
            Branch(2), nn.Conv2d(2, 2, 1), nn.ReLU(inplace=True), Branch(2), nn.Flatten(), nn.Linear(128, CLASSES)
        ),
        (2, 8, 8),
    ),
    "wrn-10-1": (lambda: wide_resnet.build("wrn-10-1", (3, 8, 8), CLASSES), (3, 8, 8)),
    "equivariant-resnet-9": (lambda: networks.build("equivariant-resnet-9", (3, 16, 16), CLASSES), (3, 16, 16)),
    "tanh-28": (lambda: tanh_cnn.build("tanh-28", (1, 28, 28), CLASSES), (1, 28, 28)),
    "scatter-28": (lambda: tanh_cnn.build("scatter-28", (9, 7, 7), CLASSES), (9, 7, 7)),
    "scatter-32": (lambda: tanh_cnn.build("scatter-32", (6, 8, 8), CLASSES), (6, 8, 8)),
}  # fmt: skip


def made(name, copies=1, n=7, seed=3):
    torch.manual_seed(seed)
    build, shape = NETWORKS[name]
    return build(), torch.randn(n * copies, *shape), torch.randint(CLASSES, (n,))


def looped(network, records, labels, loss, norm, copies=1):
    """In float64, one record after the other."""
    network = network.double()
    total = {name: torch.zeros_like(value) for name, value in network.named_parameters()}
    for index in range(len(labels)):
        own = records[index * copies : (index + 1) * copies].double()
        value = record_losses(network(own), labels[index : index + 1].repeat_interleave(copies, 0), loss).mean()
        gradients = dict(zip(total, torch.autograd.grad(value, list(network.parameters())), strict=True))
        length = math.sqrt(sum(float(gradient.square().sum()) for gradient in gradients.values()))
        for name, gradient in gradients.items():
            total[name] += gradient * min(1.0, norm / length)
    network.float()
    return total


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-10)])
@pytest.mark.parametrize("copies", [1, 4])
@pytest.mark.parametrize("loss", ["softmax", "sigmoid"])
@pytest.mark.parametrize("name", NETWORKS)
def test_sums_equal_a_loop(name, loss, copies, dtype, tolerance):
    """To 1e-5 of the largest entry in float32, and exactly in float64, where small gradients count as much."""
    network, records, labels = made(name, copies)
    engine = RecordGradients(network.to(dtype))
    free = engine.clipped_sum(records.to(dtype), labels, loss, math.inf, copies)
    lengths = looped(network, records, labels, loss, math.inf, copies)
    network.to(dtype)
    norm = 0.7 * math.sqrt(sum(float(value.square().sum()) for value in lengths.values())) / len(labels)
    for bound in (math.inf, norm, norm / 50):
        found = engine.clipped_sum(records.to(dtype), labels, loss, bound, copies)
        slow = looped(network, records, labels, loss, bound, copies)
        network.to(dtype)
        assert list(found) and set(found) == set(slow)
        largest = max(float(value.abs().max()) for value in slow.values())
        for key, value in slow.items():
            assert torch.allclose(found[key].double(), value, rtol=tolerance, atol=tolerance * largest), key
    assert any(not torch.allclose(free[key], found[key]) for key in free), "the bound binds"


@pytest.mark.parametrize("copies", [1, 4])
@pytest.mark.parametrize("name", NETWORKS)
def test_the_size_of_micro_batches_changes_nothing(name, copies):
    """In float64, where rounding bends no activation."""
    network, records, labels = made(name, copies, n=6)
    engine, records = RecordGradients(network.double()), records.double()
    whole = engine.clipped_sum(records, labels, "softmax", 0.3, copies)
    for size in range(1, 7):
        parts = [
            engine.clipped_sum(
                records[start * copies : (start + size) * copies], labels[start : start + size], "softmax", 0.3, copies
            )
            for start in range(0, 6, size)
        ]
        for key, value in whole.items():
            assert torch.allclose(sum(part[key] for part in parts), value, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("copies", [1, 4])
@pytest.mark.parametrize("limit", [0, math.inf])
@pytest.mark.parametrize(
    "name", ["strided", "one position", "tanh-28", "standardised", "wrn-10-1", "grouped", "scaled", "shared over moves"]
)
def test_patches_and_convolutions_give_the_same(name, limit, copies, monkeypatch):
    """Both ways to a convolution's gradients, in float64, where they cannot differ by rounding."""
    monkeypatch.setattr(layer_rules, "_LARGE", limit)
    monkeypatch.setattr(layer_rules, "_LONG", 0)
    network, records, labels = made(name, copies)
    found = RecordGradients(network.double()).clipped_sum(records.double(), labels, "softmax", 0.3, copies)
    slow = looped(network, records, labels, "softmax", 0.3, copies)
    assert set(found) == set(slow)
    for key, value in slow.items():
        assert torch.allclose(found[key], value, rtol=1e-8, atol=1e-10), key


def test_filters_shorter_than_the_floor_are_standardised_by_it():
    torch.manual_seed(1)
    network = NETWORKS["standardised"][0]()
    layer = network[0]
    with torch.no_grad():
        layer.weight[1] *= 1e-4
        layer.weight[2] = 0.5
    assert layer.standardised()[2].flatten().tolist() == [1, 0, 0, 1, 1]
    records, labels = torch.randn(5, 2, 8, 8), torch.randint(CLASSES, (5,))
    found = RecordGradients(network.double()).clipped_sum(records.double(), labels, "softmax", 0.3)
    for key, value in looped(network, records, labels, "softmax", 0.3).items():
        assert torch.allclose(found[key], value, rtol=1e-8, atol=1e-10), key


def test_micro_batches_suit_the_network():
    """Small layers many at a time, large ones few, and K copies of a record count K times."""

    def size(network, shape, copies=1):
        return RecordGradients(network).micro_batch(torch.zeros(copies, *shape))

    small, large = tanh_cnn.build("tanh-28", (1, 28, 28), 10), wide_resnet.build("wrn-16-4", (3, 32, 32), 10)
    assert size(small, (1, 28, 28)) == 128 and size(small, (1, 28, 28), 4) == 32
    assert size(large, (3, 32, 32)) == 32 and size(large, (3, 32, 32), 4) == 13 and size(large, (3, 32, 32), 16) == 3
    wide = wide_resnet.build("wrn-28-10", (3, 32, 32), 10)  # 146 MB a gradient
    assert size(wide, (3, 32, 32)) == 4


@pytest.mark.parametrize("name", NETWORKS)
def test_no_record_contributes_more_than_the_norm(name):
    """Adding a record, typical or enormous, moves the sum by at most C, and by C where it is clipped."""
    network, records, labels = made(name)
    engine, bound = RecordGradients(network), 1e-3
    for scale in (1.0, 1e3, 1e6):
        records[-1] *= scale
        with_it = engine.clipped_sum(records, labels, "softmax", bound)
        without = engine.clipped_sum(records[:-1], labels[:-1], "softmax", bound)
        moved = math.sqrt(sum(float((with_it[key].double() - without[key].double()).square().sum()) for key in with_it))
        assert moved <= bound * (1 + 1e-3)
        if scale == 1.0:
            assert moved == pytest.approx(bound, rel=1e-3)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", ["positions", "group norm", "tanh-28", "one position", "no rule", "own parameters"])
def test_a_broken_record_takes_no_part(name, bad):
    network, records, labels = made(name)
    engine = RecordGradients(network)
    rest = torch.tensor([0, 1, 2, 4, 5, 6])
    without = engine.clipped_sum(records[rest], labels[rest], "softmax", 0.1)
    masked = engine.clipped_sum(records, labels, "softmax", 0.1, part=torch.arange(7) != 3)
    records[3] = bad
    found = engine.clipped_sum(records, labels, "softmax", 0.1)
    for key, value in without.items():
        assert torch.allclose(found[key], value, rtol=1e-5, atol=1e-7), key
        assert torch.allclose(masked[key], value, rtol=1e-5, atol=1e-7), key


def test_no_record_gives_zeros():
    network, records, labels = made("tanh-28")
    found = RecordGradients(network).clipped_sum(records[:0], labels[:0], "softmax", 1.0)
    assert all(not value.any() for value in found.values()) and len(found) == len(list(network.parameters()))


def test_multi_label_losses():
    scores = torch.tensor([[0.3, -1.0, 2.0]])
    labels = torch.tensor([[1, 0, 1]], dtype=torch.uint8)
    p = torch.softmax(scores, 1)[0]
    assert float(record_losses(scores, labels, "softmax")) == pytest.approx(float(-(p[0].log() + p[2].log()) / 2))
    q = torch.sigmoid(scores)[0]
    slow = float(-(q[0].log() + (1 - q[1]).log() + q[2].log()) / 3)
    assert float(record_losses(scores, labels, "sigmoid")) == pytest.approx(slow)


@pytest.mark.parametrize(
    ("layer", "words"),
    [
        (nn.BatchNorm2d(3), "'1': BatchNorm2d mixes the records of a batch"),
        (nn.BatchNorm2d(3, affine=False), "mixes the records"),
        (nn.InstanceNorm2d(3, track_running_stats=True), "'1': InstanceNorm2d keeps statistics"),
        (nn.Dropout(0.1), "'1': Dropout is not for private training"),
    ],
)
def test_layers_without_a_bound_are_refused(layer, words):
    with pytest.raises(StudyError, match=words):
        RecordGradients(nn.Sequential(nn.Conv2d(2, 3, 3), layer, nn.Flatten(), nn.Linear(3, CLASSES)))


@pytest.mark.parametrize("compile", [False, True])
def test_a_layer_that_is_used_twice_is_refused(compile):
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.out = nn.Linear(6, 6), nn.Linear(6, CLASSES)

        def forward(self, x):
            return self.out(self.inner(self.inner(x)))

    engine = RecordGradients(Twice(), compile=compile)
    with pytest.raises(StudyError, match="'inner' is used twice"):
        engine.clipped_sum(torch.randn(3, 6), torch.zeros(3, dtype=torch.long), "softmax", 1.0)


def test_a_layer_that_takes_parts_of_a_record_for_records_is_refused():
    """Such as attention within windows, which stand in a line with the records."""

    class Windows(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.out = nn.Linear(3, 3), nn.Linear(6, CLASSES)

        def forward(self, x):
            return self.out(self.inner(x.reshape(2 * len(x), 3)).reshape(len(x), 6))

    records, labels = torch.randn(3, 6), torch.zeros(3, dtype=torch.long)
    with pytest.raises(StudyError, match="layer 'inner': sees 6 records where the network has 3"):
        RecordGradients(Windows()).clipped_sum(records, labels, "softmax", 1.0)


class Outside(nn.Module):
    """A parameter that stands outside layers, between two maps of as many records, channels, rows and columns."""

    def __init__(self, *shape):
        super().__init__()
        self.own, self.inner = nn.Parameter(0.5 + torch.rand(shape)), nn.Conv2d(1, 4, 3, padding=1)
        self.out = nn.Linear(64, CLASSES)

    def forward(self, x):
        return self.out(torch.tanh(self.own * self.inner(x) + self.own).flatten(1))


class Tokens(nn.Module):
    """A shift of as many tokens as there are records."""

    def __init__(self, *shape):
        super().__init__()
        self.own, self.inner, self.out = nn.Parameter(torch.rand(shape)), nn.Linear(4, 4), nn.Linear(4, CLASSES)

    def forward(self, x):
        return self.out(torch.tanh(self.inner(x[:, 0]) + self.own).mean(1))


class Borrowed(nn.Module):
    """Parameters of a layer that is never run."""

    def __init__(self):
        super().__init__()
        self.inner, self.out = nn.Linear(16, 8), nn.Linear(8, CLASSES)

    def forward(self, x):
        return self.out(functional.linear(x.flatten(1), self.inner.weight, self.inner.bias).tanh())


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.start = nn.Parameter(torch.randn(1, 1, 4))
        self.inner, self.out = nn.TransformerEncoderLayer(4, 2, 8, 0.0, batch_first=True), nn.Linear(4, CLASSES)

    def forward(self, x):
        tokens = torch.cat([self.start.expand(len(x), -1, -1), x[:, 0]], 1)
        return self.out(self.inner(tokens)[:, 0])


class Windows(nn.Module):
    """Parts of a record in a line with the records, and a table of shifts."""

    def __init__(self):
        super().__init__()
        self.table, self.inner, self.out = nn.Parameter(torch.rand(2, 8)), nn.Linear(8, 8), nn.Linear(16, CLASSES)

    def forward(self, x):
        return self.out(torch.tanh(self.inner(x.reshape(2 * len(x), 8)) + self.table[0]).reshape(len(x), 16))


OUTSIDE = [(), (1,), (4,), (1, 4), (4, 1), (4, 4), (1, 1, 1), (4, 1, 1), (4, 4, 4), (1, 1, 1, 1), (1, 4, 1, 1)]
TOKENS = [(1, 4), (4,), (4, 4), (1, 4, 4), (1, 4, 1)]
DIRECT = {f"outside {shape}": functools.partial(Outside, *shape) for shape in OUTSIDE}
DIRECT |= {f"tokens {shape}": functools.partial(Tokens, *shape) for shape in TOKENS}
DIRECT |= {"borrowed": Borrowed, "attention": Attention, "windows": Windows}


@pytest.mark.parametrize("copies", [1, 2, 4])
@pytest.mark.parametrize("records", [1, 3, 4])
@pytest.mark.parametrize("name", DIRECT)
def test_parameters_outside_layers_have_exact_gradients_whatever_their_shape(name, records, copies):
    """Also where an axis of theirs is as long as there are records, or copies."""
    torch.manual_seed(0)
    network, images = DIRECT[name]().double(), torch.randn(records * copies, 1, 4, 4).double()
    labels = torch.arange(records) % CLASSES
    for bound in (math.inf, 0.05):
        found = RecordGradients(network).clipped_sum(images, labels, "softmax", bound, copies)
        slow = looped(network, images, labels, "softmax", bound, copies)
        network.double()
        assert set(found) == set(slow)
        for key, value in slow.items():
            assert torch.allclose(found[key], value, rtol=1e-9, atol=1e-11), key


def test_what_the_engine_cannot_look_into_is_refused_with_a_way_out(monkeypatch):
    monkeypatch.setattr(tapped_pass, "BACKEND", "aot_eager")

    class Counted(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale, self.out = nn.Parameter(torch.ones(1)), nn.Linear(6, CLASSES)

        def forward(self, x):
            return self.out(x * self.scale if float(x.sum()) else x)

    records, labels = torch.randn(3, 6), torch.zeros(3, dtype=torch.long)
    with pytest.raises(StudyError, match="network 'mine': a pass through it fails .*; `record_by_record: true` takes"):
        RecordGradients(Counted(), name="mine").clipped_sum(records, labels, "softmax", 1.0)
    engine = RecordGradients(Borrowed(), compile=True)
    with pytest.raises(StudyError, match="'inner': its parameters are not used in a pass of its own; `record_by"):
        engine.clipped_sum(torch.randn(3, 1, 4, 4), labels, "softmax", 1.0)


def test_frozen_layers_have_no_part():
    network, records, labels = made("group norm")
    for layer in network[:-1]:
        layer.requires_grad_(False)
    found = RecordGradients(network).clipped_sum(records, labels, "softmax", 0.3)
    assert (
        set(found)
        == {"5.weight", "5.bias"}
        == set(RecordGradients(network).clipped_sum(records[:0], labels[:0], "softmax", 1))
    )
    head = network[-1]
    alone = RecordGradients(head).clipped_sum(network[:-1](records).detach(), labels, "softmax", 0.3)
    for key, value in alone.items():
        assert torch.allclose(found[f"5.{key}"], value, rtol=1e-5, atol=1e-7)


def by_loop(network, records, labels, norm):
    """The clipped sum, a backward pass a record."""
    trained = {name: value for name, value in network.named_parameters() if value.requires_grad}
    total = {name: torch.zeros_like(value, dtype=torch.float64) for name, value in trained.items()}
    for record, label in zip(records, labels, strict=True):
        loss = record_losses(network(record[None]), label[None], "softmax").sum()
        found = torch.autograd.grad(loss, list(trained.values()))
        length = torch.sqrt(sum(value.double().square().sum() for value in found))
        for name, value in zip(trained, found, strict=True):
            total[name] += value.double() * min(1.0, norm / float(length))
    return total


class Frozen(nn.Module):
    """Batch normalisations with public statistics, one with an activation behind it."""

    def __init__(self):
        super().__init__()
        first, second = nn.BatchNorm2d(6), nn.BatchNorm2d(4)
        second.drop, second.act = nn.Identity(), nn.ReLU(inplace=True)
        self.conv, self.norm = nn.Conv2d(2, 6, 3), FrozenBatchNorm2d(first)
        self.other, self.normed = nn.Conv2d(6, 4, 3), FrozenBatchNorm2d(second)
        self.head = nn.Linear(4, CLASSES)
        with torch.no_grad():
            for norm in (self.norm, self.normed):
                for value in norm.parameters():
                    value.copy_(0.5 + torch.rand(len(value)))

    def forward(self, x):
        return self.head(self.normed(self.other(torch.tanh(self.norm(self.conv(x))))).mean((2, 3)))


@pytest.mark.parametrize("trained", ["all", "biases", "weights"])
@pytest.mark.parametrize("kind", ["group norm", "positions", "scaled", "frozen", "layer norm"])
def test_parts_of_layers_have_the_gradients_of_a_loop(kind, trained):
    torch.manual_seed(3)
    if kind == "frozen":
        network, records = Frozen(), torch.randn(5, 2, 8, 8)
    elif kind == "layer norm":
        network = nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.Flatten(), nn.Linear(24, CLASSES))
        records = torch.randn(5, 3, 6)
    else:
        network, records, _ = made(kind)
    labels = torch.arange(len(records)) % CLASSES
    for name, value in network.named_parameters():
        end = name.rpartition(".")[2]
        if "running" not in name and trained != "all":
            value.requires_grad_((end == "bias") == (trained == "biases"))
    expected = by_loop(network, records, labels, 0.3)
    found = RecordGradients(network).clipped_sum(records, labels, "softmax", 0.3)
    assert expected.keys() == found.keys() and not any("running" in name for name in found)
    for name, value in expected.items():
        assert torch.allclose(found[name], value, rtol=1e-4, atol=1e-6), name


def test_a_frozen_normalisation_is_batch_normalisation_in_use():
    norm = nn.BatchNorm2d(3)
    for value in (norm.weight, norm.bias, norm.running_mean, norm.running_var):
        value.data.uniform_(0.5, 1.5)
    frozen = FrozenBatchNorm2d(norm)
    frozen.load_state_dict({name: value for name, value in norm.state_dict().items() if "num" not in name})
    images = torch.randn(4, 3, 5, 5)
    assert torch.allclose(frozen(images), norm.eval()(images), atol=1e-6)
    assert not frozen.running_mean.requires_grad and not frozen.running_var.requires_grad


@pytest.mark.parametrize("name", ["wrn-10-1", "scaled", "no rule", "tanh-28"])
def test_half_precision_keeps_the_bound(name):
    """The direction is that of float32, roughly; the norm is bounded exactly, not roughly."""
    network, records, labels = made(name)
    exact = RecordGradients(network).clipped_sum(records, labels, "softmax", math.inf)
    half = RecordGradients(network, "bfloat16").clipped_sum(records, labels, "softmax", math.inf)
    flat, other = (torch.cat([found[key].flatten() for key in exact]) for found in (exact, half))
    assert other.dtype == torch.float64 and 0.95 < float(functional.cosine_similarity(flat, other, 0)) < 0.99999999
    for index in range(3):
        one = RecordGradients(network, "bfloat16").clipped_sum(records[[index]], labels[[index]], "softmax", 1e-3)
        length = math.sqrt(sum(float(value.double().square().sum()) for value in one.values()))
        assert length == pytest.approx(1e-3, rel=1e-5)


@pytest.mark.parametrize(("name", "copies"), [("wrn-10-1", 2), ("tanh-28", 1), ("no rule", 1)])
def test_a_tapped_pass_gives_the_same(name, copies, monkeypatch):
    """Traced as for any backend; batches of another size too."""
    monkeypatch.setattr(tapped_pass, "BACKEND", "aot_eager")
    torch._dynamo.reset()  # so many networks in one process are more than it would trace
    network, records, labels = made(name, copies)
    network = network.double()
    plain = RecordGradients(network)
    whole = {
        size: plain.clipped_sum(records[: size * copies].double(), labels[:size], "softmax", 0.3, copies)
        for size in (7, 4)
    }
    compiled = RecordGradients(network, compile=True)
    for size, slow in whole.items():
        found = compiled.clipped_sum(records[: size * copies].double(), labels[:size], "softmax", 0.3, copies)
        for key, value in slow.items():
            assert torch.allclose(found[key], value, rtol=1e-8, atol=1e-10), key
    assert compiled.micro_batch(records[:copies].double()) >= 1


def test_parameters_outside_layers_are_not_compiled():
    with pytest.raises(StudyError, match="stands outside a layer; leave `compile` out"):
        RecordGradients(made("own parameters")[0], compile=True)


def test_a_parameter_of_two_layers_is_refused():
    """Its gradient is a sum, longer than the bound that two gradients side by side would have."""
    network = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 6), nn.Flatten(), nn.Linear(6, CLASSES))
    network[2].weight = network[0].weight
    with pytest.raises(StudyError, match="'2.weight' is '0.weight' too; no rule covers shared weights"):
        RecordGradients(network)
