"""The objective "scattering": what is told, how it is scaled, and that a network learns to tell it."""

import json

import numpy as np
import pytest
import torch
from torch import nn

from dpstudy.core.errors import StudyError
from dpstudy.data.records import Records
from dpstudy.features import open_extractor
from dpstudy.features.scatter_filters import Filters
from dpstudy.features.scattering import Scattering
from dpstudy.features.scatternet import ScatterNet
from dpstudy.models import backbones, networks
from dpstudy.pretraining.described import Described, coefficients, half_whitening
from dpstudy.pretraining.options import complete
from dpstudy.pretraining.pictures import Pictures
from dpstudy.pretraining.pretrain import pretrain
from dpstudy.pretraining.recipe import Recipe
from dpstudy.pretraining.rows import Order, PublicRows

TELLING = {
    "architecture": "wrn-10-1", "objective": "scattering", "steps": 60, "batch_size": 64, "learning_rate": 0.003,
    "optimiser": "adamw", "schedule": "cosine", "augmentation": "none", "public": "glyphs",
}  # fmt: skip


def test_what_is_told_are_the_features_of_tramer2021():
    images = np.random.default_rng(0).integers(0, 256, (5, 16, 12, 3), np.uint8)
    planes = torch.from_numpy(images.transpose(0, 3, 1, 2).copy()).float() / 255
    told = coefficients(Scattering(Filters.of(16, 12)), planes)
    assert told.shape == (5, 243, 4, 3) and not told.is_inference()
    np.testing.assert_allclose(told, ScatterNet("unit", root=True)(images), atol=1e-5)


def test_half_whitening_turns_and_scales():
    seeds = np.random.default_rng(1)
    turn, _ = np.linalg.qr(seeds.normal(size=(3, 3)))
    values = torch.from_numpy(seeds.normal(size=(50_000, 3)) * [4, 1, 0] @ turn + 7)
    centre, scaled = half_whitening(values)
    assert scaled.shape == (3, 2)  # a direction without variance is left out
    found = (values.float() - centre) @ scaled
    assert found.mean(0).abs().max() < 1e-4
    covariance = torch.cov(found.T).numpy()
    np.testing.assert_allclose(covariance, np.diag([1.6, 0.4]), atol=0.02)  # roots of 16 and 1, in the mean 1


def test_at_most_128_directions_are_told():
    assert half_whitening(torch.randn(1000, 200))[1].shape == (200, 128)


def test_the_error_is_a_share_of_the_variance():
    body = backbones.body(networks.build("wrn-10-1", (1, 8, 8), 3))
    told = torch.randn(256, 81, 2, 2, generator=torch.Generator().manual_seed(2))
    described = Described(body, [(torch.rand(256, 1, 8, 8), told)])
    truth = torch.einsum("nchw,ck->nkhw", told - told.mean((0, 2, 3))[:, None, None], described.turn)
    assert described.loss(torch.zeros_like(truth), told).item() == pytest.approx(1, abs=0.01)
    assert described.loss(truth, told).item() < 1e-6
    assert described.loss(2 * truth, told).item() == pytest.approx(1, abs=0.01)


def test_features_are_settled_and_nothing_else_changes():
    torch.manual_seed(3)
    body = backbones.body(networks.build("wrn-10-1", (1, 8, 8), 3)).eval()
    pictures = torch.rand(300, 1, 8, 8) ** 4
    with torch.no_grad():
        for layer in body.modules():
            if isinstance(layer, nn.GroupNorm):
                layer.bias.normal_()
                layer.weight.normal_()
        before = body(pictures)
        after = Described(body, [(pictures, torch.rand(300, 81, 2, 2))]).settled()(pictures)
    assert before.mean(0).abs().max() > 0.5
    torch.testing.assert_close(after.mean(0), torch.zeros(64), atol=1e-3, rtol=0)
    torch.testing.assert_close(after.std(0), torch.full((64,), 1 / 8), atol=1e-3, rtol=0)
    torch.testing.assert_close(after, (before - before.mean(0)) / before.std(0) / 8, atol=1e-3, rtol=1e-3)


def test_only_so_many_pictures_are_looked_at_first():
    body, taken = backbones.body(networks.build("wrn-10-1", (1, 8, 8), 3)), []

    def steps():
        for number in range(100):
            taken.append(number)
            yield torch.rand(512, 1, 8, 8), torch.rand(512, 81, 2, 2)

    Described(body, steps())
    assert taken == [0, 1, 2, 3]


def test_a_network_learns_to_tell(public, tmp_path):
    pretrain("it", TELLING, public, tmp_path / "model.safetensors", tmp_path / "card.json")
    card = json.loads((tmp_path / "card.json").read_text())
    assert card["options"]["objective"] == "scattering" and card["validation_by"] == "20 nearest neighbours"
    extractor = open_extractor({"extractor": "backbone"}, tmp_path)
    assert extractor.shape((8, 8, 1)) == (64,)

    rows, recipe = PublicRows(public / "train"), Recipe.of(complete(TELLING))
    pictures = Pictures(rows, Order.of(0, rows, 64), recipe, "unit", (8, 8), (0, 1))
    seen, told = pictures[0]

    def explained(body):
        """The share of the coefficients' variance that a linear layer on the map before the pooling explains."""
        pool = next(place for place, layer in enumerate(body) if isinstance(layer, nn.AdaptiveAvgPool2d))
        with torch.no_grad():
            found = body[:pool].eval()(seen)
        x = found.movedim(1, -1).flatten(0, -2).double()
        y = nn.functional.adaptive_avg_pool2d(told, found.shape[2:]).movedim(1, -1).flatten(0, -2).double()
        x, y = torch.cat([x, torch.ones(len(x), 1)], 1), y - y.mean(0)
        half = len(x) // 2
        gram = x[:half].T @ x[:half] + 0.1 * torch.eye(x.shape[1])
        weights = torch.linalg.solve(gram, x[:half].T @ y[:half])
        return 1 - ((x[half:] @ weights - y[half:]) ** 2).sum() / (y[half:] ** 2).sum()

    torch.manual_seed(0)
    start = backbones.body(networks.build("wrn-10-1", (1, 8, 8), 10))
    trained = backbones.body(networks.build("wrn-10-1", (1, 8, 8), 10))
    from safetensors.torch import load_file

    trained.load_state_dict(load_file(tmp_path / "model.safetensors"))
    assert explained(trained) > explained(start) + 0.05


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"architecture": "small_cnn", "objective": "scattering"},
            "is for Wide ResNets with group norm",
        ),
        ({"architecture": "wrn-10-1-plain", "objective": "scattering"}, "with group normalisation"),
        ({"architecture": "wrn-10-1", "objective": "scattering", "mixup": 0.2}, "mixup does not go with"),
    ],
)
def test_what_does_not_go_with_it_is_refused(options, words):
    with pytest.raises(StudyError, match=words):
        complete(options)


def test_pictures_that_are_all_the_same_are_refused():
    with pytest.raises(StudyError, match="all pictures are the same"):
        half_whitening(torch.ones(10, 81))


def test_one_class_says_nothing_about_a_network(make_folder, tmp_path):
    images = np.random.default_rng(4).integers(0, 256, (40, 8, 8, 1), np.uint8)
    records = Records(
        ids=np.array([f"p{number}" for number in range(40)], object), images=images, labels=np.zeros(40, np.int32)
    )
    make_folder(records.take(np.arange(30, 40)), "leaves", "validation", private=False, classes=["drawn"])
    folder = make_folder(records.take(np.arange(30)), "leaves", "train", private=False, classes=["drawn"]).parent
    pretrain("it", TELLING | {"steps": 2}, folder, tmp_path / "model.safetensors", tmp_path / "card.json")
    card = json.loads((tmp_path / "card.json").read_text())
    assert card["validation_accuracy"] is None and card["validation_by"] is None
