"""A Wide ResNet pre-trained on public images, fine-tuned privately: what depends on what, and what the ledger says."""

import copy
import json

import numpy as np
import pytest

from dpstudy.cell.bound import releases_of
from dpstudy.core.files import read_tensors
from tests.workflow.conftest import StudyFolder, make_folder

TUNED = {
    "method": "network_dpsgd",
    "network": "wrn-10-1",
    "start": "wrn",
    "learning_rate": 1e-6,
    "clipping_norm": 1.0,
    "batch_size": "full",  # whose noise each process finds at once
    "steps": 2,
    "curve_points": 1,
}
FINE = {
    "study": "fine",
    "datasets": {"digits": {"reader": "digits", "splits": {"test": 0.2, "records": 200}, "delta": "1e-4"}},
    "public": {"glyphs": {"reader": "glyphs", "count": 200}},
    "dedup": {"method": "squares"},
    "backbones": {"wrn": {"architecture": "wrn-10-1", "public": "glyphs", "epochs": 1, "learning_rate": 0.01}},
    "features": {"pixels": {"extractor": "pixels"}, "wrn": {"extractor": "backbone", "backbone": "wrn"}},
    "methods": {
        "tuned": TUNED,
        "pair": TUNED | {"devices": 2},
        "parts": TUNED | {"trained": {"last": 1}},
        "first": TUNED | {"trained": {"head_first": 1}, "augmentation": {"multiplicity": 2, "mixed": 1}},
        "head": {"method": "first_order", "learning_rate": 1.0, "clipping_norm": 1.0, "steps": 2},
    },
    "cells": [
        {"features": ["pixels"], "entries": ["tuned", "pair", "parts", "first"]},
        {"features": ["wrn"], "entries": ["head"]},
    ],
    "epsilons": ["2"],
    "seeds": [0],
}
CELL = "digits/pixels/tuned/eps=2"


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> StudyFolder:
    folder = make_folder(tmp_path_factory.mktemp("fine") / "study")
    folder.write_config(FINE)
    result = folder.snakemake()
    assert result.returncode == 0, result.stdout + result.stderr
    return folder


def test_the_cell_starts_from_the_backbone(finished):
    public = read_tensors(finished.path / "results/backbones/wrn/model.safetensors")
    tuned = read_tensors(finished.path / f"results/cells/{CELL}/model.safetensors")
    np.testing.assert_allclose(tuned["network.0.weight"], public["0.weight"], atol=1e-4)
    ledger = json.loads(finished.read(f"cells/{CELL}/ledger.json"))
    assert ledger["guarantee"] == "proved" and not any("glyphs" in sentence for sentence in ledger["not_accounted"])


def test_a_part_is_trained_and_the_replay_vouches_for_it(finished):
    """The certificate replays each entry on other records, too."""
    public = read_tensors(finished.path / "results/backbones/wrn/model.safetensors")
    for name, same in (("parts", True), ("first", False)):
        model = read_tensors(finished.path / f"results/cells/digits/pixels/{name}/eps=2/model.safetensors")
        assert np.array_equal(model["network.0.weight"], public["0.weight"]) is same
        ledger = json.loads(finished.read(f"cells/digits/pixels/{name}/eps=2/ledger.json"))
        assert [event["count"] for event in ledger["events"]] == [2] and ledger["guarantee"] == "proved"
    certificate = finished.read("privacy/certificates/digits.json").decode()
    assert all(f"digits/pixels/{name}/eps=2" in certificate for name in ("parts", "first"))


def test_two_processes_train_a_cell_and_one_writes_it(finished):
    one, two = (
        json.loads(finished.read(f"cells/digits/pixels/{name}/eps=2/ledger.json")) for name in ("tuned", "pair")
    )
    assert releases_of(one) == releases_of(two) and one["epsilon"] <= 2
    model = read_tensors(finished.path / "results/cells/digits/pixels/pair/eps=2/model.safetensors")
    public = read_tensors(finished.path / "results/backbones/wrn/model.safetensors")
    np.testing.assert_allclose(model["network.0.weight"], public["0.weight"], atol=1e-4)
    log = (finished.path / "results/logs/train_seed/digits/pixels/pair/eps=2/seed=0.log").read_text()
    assert log.count("plan:") == 1 and "done in" in log


def test_another_backbone_trains_the_cells_anew_and_nothing_else(finished):
    config = copy.deepcopy(FINE)
    config["backbones"]["wrn"]["epochs"] = 2
    finished.write_config(config)
    planned = {rule for rule, _ in finished.planned()}
    assert {"pretrain_backbone", "train_seed", "gather_cell", "extract_shard", "train_stepped"} <= planned
    assert not planned & {"prepare_shard", "prepare_manifest", "match_public"}
    finished.write_config(FINE)
    assert finished.planned() == []


def test_the_start_is_de_duplicated_and_its_network_checked(finished):
    files = finished.snakemake("--summary", "--cores", "1").stdout
    assert "results/dedup/glyphs/kept.parquet" in files
    config = copy.deepcopy(FINE)
    config["methods"]["tuned"]["network"] = "wrn-16-1"
    finished.write_config(config)
    result = finished.snakemake("-n")
    words = "methods.tuned.start: the backbone 'wrn' is a wrn-10-1, not a wrn-16-1"
    assert result.returncode and words in result.stdout
    config["methods"]["tuned"] |= {
        "network": "nf-resnet-26",
        "start": {"weights": "nf.safetensors", "trained_on": "unmatched"},
    }
    finished.write_config(config)
    result = finished.snakemake("-n")
    assert result.returncode and "methods.tuned.start.weights: data/nf.safetensors does not exist" in result.stdout
    finished.write_config(FINE)


def test_a_mistake_is_said_once(finished):
    """What a process of several finds wrong is the job's own sentence. The last test here: its cell stays unmade."""
    config = copy.deepcopy(FINE)
    config["methods"]["pair"] |= {"learning_rate": 1e38, "clipping_norm": 1e6}
    finished.write_config(config)
    result = finished.snakemake("results/cells/digits/pixels/pair/eps=2/metrics.json")
    assert result.returncode
    log = (finished.path / "results/logs/train_seed/digits/pixels/pair/eps=2/seed=0.log").read_text()
    assert log.count(" ERROR ") == 1 and "Traceback" not in log
