import copy
import json

import numpy as np
import pytest
import torch

from dpstudy.core import torchrun
from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_tensors
from dpstudy.features import open_extractor
from dpstudy.methods.keeper import Keeper
from dpstudy.models import backbones
from dpstudy.pretraining.options import complete
from dpstudy.pretraining.pictures import Pictures
from dpstudy.pretraining.pretrain import pretrain
from dpstudy.pretraining.recipe import Recipe
from dpstudy.pretraining.rows import Order, PublicRows
from dpstudy.pretraining.train import train

TINY = {
    "architecture": "small_cnn", "width": 8, "embedding": 16, "epochs": 2, "batch_size": 64, "learning_rate": 0.01,
    "checkpoint_minutes": 0,
}  # fmt: skip
VIT = {
    "architecture": "timm:test_vit", "size": [160, 160], "steps": 2, "batch_size": 20, "warm_up": 1,
    "scaling": "unit", "checkpoint_minutes": 0,
}  # fmt: skip
TELLING = {
    "architecture": "wrn-10-1", "objective": "scattering", "epochs": 2, "batch_size": 64, "learning_rate": 0.003,
    "optimiser": "adamw", "checkpoint_minutes": 0,
}  # fmt: skip
RESNET = {
    "architecture": "timm:test_resnet", "size": [32, 32], "steps": 3, "batch_size": 30, "warm_up": 1,
    "scaling": "unit", "learning_rate": 0.01, "checkpoint_minutes": 0, "moving_average": 0.9,
}  # fmt: skip


def made(public, out, options, **more):
    pretrain("it", options | {"public": "glyphs"}, public, out / "model.safetensors", out / "card.json", **more)
    return read_tensors(out / "model.safetensors"), json.loads((out / "card.json").read_text())


class KilledError(Exception):
    pass


@pytest.mark.parametrize(
    "options",
    [
        TINY,
        TINY | {"optimiser": "momentum", "moving_average": 0.9, "augmentation": "crop"},
        TINY | {"objective": "contrast", "augmentation": "contrast"},
        TELLING,
        RESNET,
    ],
    ids=["adamw", "average", "contrast", "scattering", "timm with batch normalisation"],
)
def test_a_killed_training_ends_as_it_would_have(public, tmp_path, monkeypatch, options):
    whole, card = made(public, tmp_path / "whole", options)
    saved = Keeper.save
    kept = tmp_path / "checkpoint.safetensors"

    def save_and_die(self, tensors, facts):
        saved(self, tensors, facts)
        if facts["done"] == 2:
            raise KilledError

    monkeypatch.setattr(Keeper, "save", save_and_die)
    with pytest.raises(KilledError):
        made(public, tmp_path / "again", options, checkpoint=kept)
    assert kept.exists() and not (tmp_path / "again").exists()
    monkeypatch.setattr(Keeper, "save", saved)
    resumed, again = made(public, tmp_path / "again", options, checkpoint=kept)
    assert not kept.exists() and card == again
    assert all((resumed[name] == whole[name]).all() for name in whole) and resumed.keys() == whole.keys()


def test_a_checkpoint_of_other_options_or_rows_is_not_used(public, tmp_path, monkeypatch):
    kept = tmp_path / "checkpoint.safetensors"
    with monkeypatch.context() as patch:
        patch.setattr(Keeper, "remove", lambda self: None)
        made(public, tmp_path / "first", TINY, checkpoint=kept)
    found, load = [], Keeper.load
    with monkeypatch.context() as patch:
        patch.setattr(Keeper, "remove", lambda self: None)
        patch.setattr(Keeper, "load", lambda self: found.append(load(self)) or found[-1])
        for library in ("one", "one", "other"):
            made(public, tmp_path / "code", TINY, checkpoint=kept, library=library)
    assert [kept is None for kept in found] == [True, False, True]
    fresh, _ = made(public, tmp_path / "fresh", TINY | {"seed": 1})
    other, _ = made(public, tmp_path / "other", TINY | {"seed": 1}, checkpoint=kept)
    assert all((fresh[name] == other[name]).all() for name in fresh)


def test_micro_batches_give_the_gradient_of_the_whole(public):
    """And bfloat16 passes train too, to weights that differ a little."""
    found = []
    for more in ({}, {"micro_batch": 7}, {"precision": "bfloat16"}):
        options = complete(TINY | {"augmentation": "none"} | more)
        rows = PublicRows(public / "train")
        torch.manual_seed(0)
        network = backbones.build(options, (8, 8, 1), 10)
        found.append(train(network, rows, Recipe.of(options), "unit", (8, 8)).state_dict())
    whole, parts, rough = found
    for name, value in whole.items():
        torch.testing.assert_close(parts[name], value, rtol=1e-3, atol=1e-5)
    changed = [float((rough[name] - value).norm() / value.norm()) for name, value in whole.items() if value.norm()]
    assert 0 < max(changed) < 0.5


def test_steps_are_those_of_plain_loops_in_float64(public):
    """Clipped gradients, momentum, weight decay, warm-up and the moving average, each written out."""
    options = complete(
        TINY
        | {"augmentation": "none", "optimiser": "momentum", "weight_decay": 0.1, "clip_norm": 0.05, "warm_up": 3}
        | {"moving_average": 0.3, "steps": 5, "schedule": "linear", "learning_rate": 0.2}
    )
    recipe, rows = Recipe.of(options), PublicRows(public / "train")
    torch.manual_seed(0)
    network = backbones.build(options, (8, 8, 1), 10)
    slow = copy.deepcopy(network).double()
    found = train(network, rows, recipe, "unit", (8, 8)).state_dict()
    order = Order.of(recipe.seed, rows, 64)
    pictures = Pictures(rows, order, recipe, "unit", (8, 8), (0, 1))
    weights = dict(slow.named_parameters())
    velocity = {name: torch.zeros_like(value) for name, value in weights.items()}
    mean = {name: value.detach().clone() for name, value in weights.items()}
    for step, rate in enumerate([0.2 / 3, 0.4 / 3, 0.2, 0.2, 0.1]):
        seen, labels = pictures[step]
        loss = -torch.log_softmax(slow(seen.double()), 1)[torch.arange(len(labels)), labels].mean()
        gradients = dict(zip(weights, torch.autograd.grad(loss, list(weights.values())), strict=True))
        norm = sum(float((value**2).sum()) for value in gradients.values()) ** 0.5
        keep = min(0.3, (1 + step) / (10 + step))
        with torch.no_grad():
            for name, value in weights.items():
                gradient = gradients[name] * min(1, 0.05 / norm) + 0.1 * value
                velocity[name] = 0.9 * velocity[name] + gradient
                value -= rate * velocity[name]
                mean[name] = keep * mean[name] + (1 - keep) * value
    for name, value in mean.items():
        np.testing.assert_allclose(found[name].numpy(), value.numpy(), rtol=1e-3, atol=1e-5, err_msg=name)


def test_pictures_of_workers_are_the_same(public, tmp_path):
    alone, _ = made(public, tmp_path / "alone", TINY | {"epochs": 1})
    helped, card = made(public, tmp_path / "helped", TINY | {"epochs": 1, "workers": 2})
    assert all((alone[name] == helped[name]).all() for name in alone) and "workers" not in card["options"]


def test_what_a_worker_finds_wrong_is_one_sentence(public, tmp_path):
    shard = sorted((public / "train").glob("*.parquet"))[1]
    content = bytearray(shard.read_bytes())
    content[len(content) // 2] ^= 1  # among the pixels: found when the shard is read whole
    shard.write_bytes(content)
    for workers in (0, 1):
        with pytest.raises(StudyError, match="^(backbone 'it': )?[^ ]*part-00001.parquet: ") as caught:
            made(public, tmp_path, TINY | {"workers": workers})
        assert "Traceback" not in str(caught.value) and "\n" not in str(caught.value)


def test_grey_images_have_no_colours_to_scale(public, tmp_path):
    _, card = made(public, tmp_path, {key: value for key, value in RESNET.items() if key != "scaling"} | {"steps": 1})
    assert card["options"]["scaling"] == "unit"
    with pytest.raises(StudyError, match="scaling 'imagenet' needs 3 channels"):
        made(public, tmp_path, RESNET | {"scaling": "imagenet"})


@pytest.mark.slow
def test_two_processes_train_what_one_does(public, tmp_path, monkeypatch):
    # with a GPU for one of them, they would round differently
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    options = TINY | {"augmentation": "none", "moving_average": 0.5, "clip_norm": 0.1}
    one, _ = made(public, tmp_path / "one", options)
    arguments = {
        "name": "it", "options": options | {"public": "glyphs"}, "public_folder": str(public),
        "out_model": str(tmp_path / "two" / "model.safetensors"), "out_card": str(tmp_path / "two" / "card.json"),
    }  # fmt: skip
    content = {"arguments": arguments, "log": str(tmp_path / "log" / "two.log")}
    torchrun.run("dpstudy.pretraining.rank", content, processes=2, threads=2)
    two = read_tensors(tmp_path / "two" / "model.safetensors")
    for name, value in one.items():
        np.testing.assert_allclose(two[name], value, rtol=1e-3, atol=2e-5, err_msg=name)


def test_a_vision_transformer_is_trained_by_the_recipe_and_gives_features(public, tmp_path):
    """AugReg's pictures, Mixup, warm-up and decay on a tiny transformer; images are brought to its size."""
    tensors, card = made(public, tmp_path, VIT)
    assert card["image_shape"] == [160, 160, 1] and card["public_shape"] == [8, 8, 1]
    assert card["options"]["mixup"] == 0.2 and card["options"]["rand_augment"] == {"layers": 2, "magnitude": 15}
    assert {"head.weight", "norm.weight"} <= tensors.keys()
    images = np.random.default_rng(0).integers(0, 256, (3, 8, 8, 1)).astype(np.uint8)
    token = open_extractor({"extractor": "backbone"}, tmp_path)
    mean = open_extractor({"extractor": "backbone", "pool": "mean"}, tmp_path)
    assert token.shape((8, 8, 1)) == mean.shape((30, 20, 1)) == (64,)
    assert not np.allclose(token(images), mean(images))
    network = backbones.build(card["options"], (160, 160, 1), 10)
    network.load_state_dict({name: torch.from_numpy(value) for name, value in tensors.items()})
    head = network.head
    scores = token(images) @ head.weight.detach().numpy().T + head.bias.detach().numpy()
    with torch.no_grad():
        whole = network.eval()(token.views(images)[0].cpu()).numpy()
    np.testing.assert_allclose(scores, whole, rtol=1e-3, atol=1e-4)


@pytest.mark.slow  # three quarters of a minute
def test_a_network_learns_without_labels(public, tmp_path):
    options = {
        "architecture": "wrn-10-1", "objective": "contrast", "epochs": 30, "batch_size": 100, "area": 0.5,
        "optimiser": "adamw", "learning_rate": 0.003, "schedule": "cosine", "weight_decay": 0.01,
    }  # fmt: skip
    tensors, card = made(public, tmp_path, options)
    _, start = made(public, tmp_path / "start", options | {"steps": 1, "learning_rate": 1e-9})
    assert card["validation_by"] == "20 nearest neighbours" and not any("head" in name for name in tensors)
    assert card["validation_accuracy"] > start["validation_accuracy"] + 5
    assert open_extractor({"extractor": "backbone"}, tmp_path).shape((8, 8, 1)) == (64,)
