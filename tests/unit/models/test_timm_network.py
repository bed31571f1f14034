"""timm's networks as they are trained privately: the same function, and per-record gradients that hold."""

import logging
import math

import pytest
import timm
import torch
from torch import nn

from dpstudy.core.errors import StudyError
from dpstudy.methods.network_check import check_network
from dpstudy.methods.record_gradients import RecordGradients, record_losses
from dpstudy.models import networks, timm_network
from dpstudy.models.standardised_conv import ScaledConv2d

NARROW = {"depths": (1, 1, 1, 1), "channels": (32, 32, 48, 48)}
NFNET = NARROW | {"group_size": 8, "stem_chs": 32, "num_features": 64}
SHAPE = (3, 32, 32)


def small(name):
    torch.manual_seed(5)
    overlay = NFNET if name.startswith("nfnet") else NARROW if name.startswith("nf-") else {}
    return timm_network.build(name, SHAPE, 4, **overlay)


@pytest.mark.parametrize(
    ("name", "theirs", "overlay"),
    [("nf-resnet-26", "nf_resnet50", NARROW | {"skipinit": True}), ("nfnet-f0", "dm_nfnet_f0", NFNET)],
)
def test_our_convolutions_compute_what_timms_do(name, theirs, overlay):
    ours = small(name)
    reference = timm.create_model(theirs, num_classes=4, **overlay)
    reference.load_state_dict(ours.state_dict())
    for side in (32, 45):
        images = torch.randn(2, 3, side, side)
        assert torch.allclose(ours(images), reference(images), rtol=1e-4, atol=1e-5)
    assert sum(isinstance(layer, ScaledConv2d) for layer in ours.modules()) > 10


@pytest.mark.parametrize(
    ("name", "parameters", "branches"),
    [  # a ResNet of the depth has as many: its batch normalisations' gains and biases are the convolutions' here
        ("nf-resnet-50", 25_557_032, 16),
        ("nf-resnet-101", 44_549_160, 33),
        ("nf-resnet-152", 60_192_808, 50),
        ("nf-resnet-200", 64_673_832, 66),
        ("nfnet-f3", 254.9e6, 48),  # Brock et al. 2021b: 254.9 million
    ],
)
def test_networks_of_full_size_have_the_published_size_and_a_rule_for_every_layer(name, parameters, branches):
    with torch.device("meta"):  # shapes alone: no memory, no time
        network = networks.build(name, SHAPE, 1000)
    gains = [key for key, _ in network.named_parameters() if key.endswith("skipinit_gain")]
    count = sum(value.numel() for value in network.parameters()) - len(gains)
    assert len(gains) == branches and abs(count - parameters) <= (0 if isinstance(parameters, int) else 0.05e6)
    kinds = {type(rule).__name__ for rule in RecordGradients(network)._rules.values()}
    assert kinds == {"OuterProducts", "StandardisedProducts"}  # none is run again record by record


@pytest.mark.parametrize("name", ["nf-resnet-26", "nfnet-f0"])
def test_branches_of_normaliser_free_networks_start_open(name):
    gains = [value.item() for key, value in small(name).named_parameters() if key.endswith("skipinit_gain")]
    assert gains == [1.0] * 4


@pytest.mark.parametrize(
    "name",
    ["nf-resnet-26", "nfnet-f0", "timm:vit_tiny_patch16_224", "timm:resnet10t+gn"]
    # of scales of shape (1,), of a gain for each channel, and of tables of attention within windows
    + ["timm:poolformerv2_s12+gn", "timm:test_convnext", "timm:test_maxvit+gn"]
    # batch normalisation with public statistics, with an activation behind it and without
    + ["timm:resnet10t+frozen", "timm:test_efficientnet+frozen"]
    # of images that are enlarged first
    + ["timm:test_efficientnet@48+frozen"],
)
def test_sums_equal_a_loop(name):
    network = small(name).double()
    records, labels = torch.randn(6, *SHAPE, dtype=torch.float64), torch.tensor([0, 1, 3])
    with torch.no_grad():
        for value in network.parameters():
            value += 0.05 * torch.randn_like(value)  # gains that start at 0 would hide their branches
    trained = {key: value for key, value in network.named_parameters() if value.requires_grad}
    found = RecordGradients(network).clipped_sum(records, labels, "softmax", 0.3, copies=2)
    total = {key: torch.zeros_like(value) for key, value in trained.items()}
    for index in range(3):
        loss = record_losses(network(records[2 * index : 2 * index + 2]), labels[[index, index]], "softmax").mean()
        gradients = torch.autograd.grad(loss, list(trained.values()))
        length = math.sqrt(sum(float(gradient.square().sum()) for gradient in gradients))
        assert length > 0.3
        for key, gradient in zip(total, gradients, strict=True):
            total[key] += gradient * 0.3 / length
    assert set(found) == set(total)
    for key, value in total.items():
        assert torch.allclose(found[key], value, rtol=1e-7, atol=1e-9), key


def test_images_are_enlarged_first():
    enlarged, plain = (
        small("timm:test_efficientnet@64+frozen"),
        timm_network.build("timm:test_efficientnet+frozen", (3, 64, 64), 4),
    )
    plain.load_state_dict(enlarged.state_dict())
    images = torch.rand(2, *SHAPE)
    larger = nn.functional.interpolate(images, (64, 64), mode="bilinear", antialias=True)
    with torch.inference_mode():
        assert torch.equal(enlarged.eval()(images), plain.eval()(larger))
        assert not torch.allclose(enlarged(images), plain(images), atol=1e-3)
    for name in ("timm:test_efficientnet@0", "timm:test_efficientnet@", "timm:test_efficientnet@64x64"):
        with pytest.raises(StudyError, match="none of that name"):
            networks.build(name, SHAPE, 4)


def test_batch_normalisation_is_refused_or_converted_by_name(caplog):
    with pytest.raises(StudyError, match="BatchNormAct2d|BatchNorm2d"):
        RecordGradients(small("timm:resnet10t"))
    with caplog.at_level(logging.INFO, logger="dpstudy"):
        network = small("timm:resnet10t+gn")
    assert not any(isinstance(layer, nn.BatchNorm2d) for layer in network.modules())
    assert "layer1.0.bn1" in caplog.text


def test_networks_that_do_not_exist_or_fit_are_refused():
    for name, words in [
        ("timm:resnet51", "'resnet51' is not one of timm"),
        ("nf-resnet-51", "there are depths 26, 50"),
        ("nfnet-f9", "none of that name"),
    ]:
        with pytest.raises(StudyError, match=words):
            networks.build(name, SHAPE, 4)
    with pytest.raises(StudyError, match="cannot take images"):
        networks.build("timm:vit_tiny_patch16_224", (3, 9, 9), 4)


def test_dropout_that_no_argument_turns_off_is_off():
    network = small("timm:cpubone_nano+frozen")
    assert any(isinstance(layer, nn.Dropout) for layer in network.modules())
    assert all(layer.p == 0 for layer in network.modules() if isinstance(layer, nn.Dropout))


def test_a_network_that_mixes_records_is_found():
    """Nothing of it is a layer that could be refused by its kind."""

    class Mixing(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.out = nn.Linear(5, 5), nn.Linear(5, 4)

        def forward(self, x):
            x = self.inner(x)
            return self.out(x - x.mean(0))

    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.out = nn.Linear(5, 4)
            self.register_buffer("seen", torch.zeros(5))

        def forward(self, x):
            self.seen += x.detach().sum(0)
            return self.out(x)

    class Closed(nn.Module):
        """The same in a branch whose gain starts at 0."""

        def __init__(self):
            super().__init__()
            self.mixing, self.plain, self.gain = Mixing(), nn.Linear(5, 4), nn.Parameter(torch.zeros(1, 1))

        def forward(self, x):
            return self.plain(x) + self.gain * self.mixing(x)

    for network in (Mixing(), Closed()):
        with pytest.raises(StudyError, match="is not what it is without other records"):
            check_network("mixing", network, (5,), 4)
    with pytest.raises(StudyError, match="changes its state 'seen'"):
        check_network("counting", Counting(), (5,), 4)
    check_network("fine", nn.Linear(5, 4), (5,), 4)


def test_a_layer_that_is_taken_for_another_is_found(monkeypatch):
    """A linear layer with an activation inside, were its kind not looked at closely."""

    class Loud(nn.Linear):
        def forward(self, x):
            return super().forward(x).tanh()

    network = nn.Sequential(Loud(5, 5), nn.Linear(5, 4))
    check_network("fine", network, (5,), 4)
    from dpstudy.methods import layer_rules, record_gradients

    monkeypatch.setattr(record_gradients, "rule_of", lambda layer: layer_rules.OuterProducts(layer))
    with pytest.raises(StudyError, match="is not what it is without other records"):
        check_network("loud", network, (5,), 4)


def test_the_classifier_of_each_family():
    assert networks.classifier(small("nf-resnet-26")) == "head.fc"
    assert networks.classifier(networks.build("wrn-10-1", SHAPE, 4)) == "8"
    assert networks.classifier(networks.build("lenet", (1, 28, 28), 10)) == "11"


def test_lenet():
    network = networks.build("lenet", (1, 28, 28), 10)
    assert sum(value.numel() for value in network.parameters()) == 61706  # LeNet-5's, with full connections
    assert network(torch.zeros(2, 1, 28, 28)).shape == (2, 10)
    assert networks.build("lenet", (3, 32, 32), 10)(torch.zeros(2, 3, 32, 32)).shape == (2, 10)
    with pytest.raises(StudyError, match="28x28 or 32x32"):
        networks.build("lenet", (1, 20, 20), 10)
