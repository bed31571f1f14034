"""studies/tramer2021-data-extra.yaml through the real workflow, shrunk to a hundred made-up images: what the ledger
says of a data set with extra records, and what reruns."""

import copy
import json
import shutil

import numpy as np
import pytest
from PIL import Image

from dpstudy.config.including import read_config
from dpstudy.config.tuned import CHOSEN_BEFOREHAND
from dpstudy.core.files import read_table
from dpstudy.data.names import CHOSEN
from dpstudy.plan.outside import FLOOR_CHOSEN, KEPT_NUMBERS
from tests.workflow.conftest import ROOT, StudyFolder, make_folder

OWN, EXTRA, DATASET, CELL = 60, 40, "cifar10-100k", "results/cells/cifar10-100k/scatternet/sn-linear/eps=3"
STUDY = read_config(ROOT / "studies" / "tramer2021-data-extra.yaml")
SAID = "What the entry says of its settings."
(FOOTNOTE,) = STUDY["datasets"][DATASET]["not_accounted"]


def shrunk():
    """The study's data sets of 50,000 and 100,000 records with its linear model, a few steps on full batches."""
    config = copy.deepcopy(STUDY)
    datasets = {name: config["datasets"][name] | {"shards": 1, "test_split": "public"} for name in ("cifar10", DATASET)}
    datasets[DATASET]["extra"]["records"] = EXTRA
    lines = [config["figures"]["tramer2021-figure-4"]["lines"][0]]
    return config | {
        "datasets": datasets,
        "features": {"scatternet": config["features"]["scatternet"]},
        "methods": {
            "sn-linear": config["methods"]["sn-linear"]
            | {"batch_size": "full", "curve_points": 1, "not_accounted": [SAID]}
        },
        "cells": [{"entries": ["sn-linear"]}],
        "overrides": [
            change | {"set": change["set"] | {"epochs": 3}}
            for change in config["overrides"]
            if change["match"] == {"dataset": DATASET, "entry": "sn-linear"}
        ],
        "seeds": [0],
        "noise": "secure",  # seeded noise is one more sentence in each ledger
        "release": {"budget": "1000"},  # nobody is asked
        "tables": {},
        "figures": {"figure": {"style": "size", "datasets": list(datasets), "lines": lines}},
    }


def made_up(folder):
    """CIFAR-10 as mosaics of OWN and 20 tiles, and more images than are asked for."""
    rng = np.random.default_rng(0)
    for name in ("cifar10", "tiny-images-500k"):
        (folder / name).mkdir(parents=True)
    for pool, rows in (("train", OWN), ("test", 20)):
        tiles = rng.integers(0, 256, (32 * rows // 10, 320, 3), np.uint8)
        Image.fromarray(tiles).save(folder / "cifar10" / f"{pool}_00.png")
        np.save(folder / "cifar10" / f"{pool}_labels.npy", np.arange(rows) % 10)
    np.save(folder / "tiny-images-500k" / "all_images.npy", rng.integers(0, 256, (50, 32, 32, 3), np.uint8))
    np.save(folder / "tiny-images-500k" / "all_labels.npy", np.arange(50) % 10)


@pytest.fixture(scope="module")
def enlarged(tmp_path_factory) -> StudyFolder:
    """The study with the cell of the enlarged data set finished, the other not begun."""
    folder = make_folder(tmp_path_factory.mktemp("enlarged") / "study")
    made_up(folder.path / "data")
    folder.write_config(shrunk())
    result = folder.snakemake(f"{CELL}/ledger.json")
    assert result.returncode == 0, result.stdout + result.stderr
    return folder


def test_the_ledger_has_the_size_the_sentences_and_the_sampled_statistics(enlarged):
    ledger = json.loads((enlarged.path / CELL / "ledger.json").read_text())
    assert ledger["n"] == OWN + EXTRA and ledger["delta"] == 5e-6
    beforehand = CHOSEN_BEFOREHAND.format("published grid (tramer2021, Table 16)")
    assert ledger["not_accounted"] == [FOOTNOTE, CHOSEN, FLOOR_CHOSEN, SAID, beforehand]
    assert [(event["sampling"], event["sampling_rate"], event["count"]) for event in ledger["events"]] == [
        ("poisson", 0.5, 1),
        ("poisson", 0.5, 1),
        ("none", 1.0, 3),
    ]
    assert ledger["guarantee"] == "proved" and 2.99 < ledger["epsilon"] <= 3


def test_another_sentence_reruns_the_cells_of_its_data_set_alone(enlarged):
    before, config = enlarged.planned(), shrunk()
    config["datasets"][DATASET]["not_accounted"] = ["Another sentence."]
    enlarged.write_config(config)
    after = enlarged.planned()
    enlarged.write_config(shrunk())
    assert set(after) - set(before) == {("train_stepped", f"{CELL}/run.json")}


def test_what_an_old_book_knows_keeps_its_row_numbers_and_a_new_one_its_names(enlarged):
    """Old lines do not say what ids were; nothing is read anew where the book is as this version wrote it."""
    shard = f"results/data/{DATASET}/train/part-00000.parquet"
    path = enlarged.path / "results" / "privacy" / "spent.jsonl"
    (line,) = path.read_text().splitlines()
    assert json.loads(line)["ids"] == "content" and enlarged.planned(shard) == []
    before = read_table(enlarged.path / shard).column("id").to_pylist()
    assert {len(name) for name in before if name.startswith("extra")} == {len("extra-all-") + 32}
    old = StudyFolder(enlarged.path.with_name("old"))
    shutil.copytree(enlarged.path, old.path)
    shutil.rmtree(old.path / "results" / "cells")
    old.write_config(shrunk() | {"data_root": str(enlarged.path / "data"), "seeds": [1]})
    book = old.path / path.relative_to(enlarged.path)
    book.write_text(json.dumps({key: value for key, value in json.loads(line).items() if key != "ids"}) + "\n")
    result = old.snakemake(f"{CELL}/ledger.json")
    assert result.returncode == 0, result.stdout + result.stderr
    after = read_table(old.path / shard).column("id").to_pylist()
    assert len(after) == len(before)
    assert {len(name) for name in after if name.startswith("extra")} == {len("extra-all-00000")}
    assert KEPT_NUMBERS in json.loads((old.path / CELL / "ledger.json").read_text())["not_accounted"]
    assert "ids" not in json.loads(book.read_text().splitlines()[1]), "nor does the next training know it otherwise"


def test_an_edit_of_the_extra_reader_reads_that_data_set_anew(enlarged):
    before = enlarged.planned()
    path = enlarged.path / "workflow" / "dpstudy" / "data" / "readers" / "arrays.py"
    text = path.read_text()
    path.write_text(text + "\n# an edit\n")
    after = enlarged.planned()
    path.write_text(text)
    read = [("prepare_shard", f"results/data/{DATASET}/{split}/part-00000.parquet") for split in ("test", "train")]
    assert {job for job in set(after) - set(before) if job[0] == "prepare_shard"} == set(read)
