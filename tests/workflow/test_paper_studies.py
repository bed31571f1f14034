"""The studies of tramer2021 and de2022, each shrunk to sixty made-up images and few steps, up to claims and report.

One of them in every run of the tests; all of them take minutes: DPSTUDY_STUDIES=1 python -m pytest on this file.
"""

import copy
import os
import re

import numpy as np
import pytest
from safetensors.torch import save_file

from dpstudy.config.cells import unfold
from dpstudy.config.including import read_config
from dpstudy.config.loading import load
from dpstudy.core.files import read_json
from dpstudy.models.resnext29 import ResNeXt29
from dpstudy.privacy.events import ITERATED
from tests.workflow.conftest import ROOT, StudyFolder, make_folder
from tests.workflow.made_up import TRAIN, folders_of_images, made_up, untrained

EXTRA, BATCH, ATTACKED = 12_500, 16, 30
STUDIES = sorted(path.stem for paper in ("tramer2021", "de2022") for path in (ROOT / "studies").glob(f"{paper}-*.yaml"))
ALWAYS = ("tramer2021-iteration-small",)  # the quickest that has cells, a table, claims and a report
SMALLER = 4  # times smaller images where a study scales them


def shrunk(config: dict) -> dict:
    """The study with one seed and, wherever it trains or searches, as little as there can be."""
    config = copy.deepcopy(config) | {"seeds": [0]}
    for dataset in config["datasets"].values():
        dataset["shards"] = 1
        smaller(dataset, "size")
        if "records" in dataset.get("splits", {}):
            few = BATCH + 2 + dataset["splits"]["records"] // 700  # all sizes must differ
            dataset["splits"]["records"] = ATTACKED if "black_box" in config else min(TRAIN, few)
        if "left_out" in dataset.get("splits", {}):  # of so few records none would be left for validation
            dataset["splits"] = {"validation": 0.3}
        if "extra" in dataset:
            dataset["extra"]["records"] //= EXTRA  # all sizes must differ
    for public in config.get("public", {}).values():
        if "count" in public:
            public["count"] = 40
        public["shards"] = 1
        if "validation" in public.get("splits", {}):
            public["splits"]["validation"] = 0.3
    for features in config["features"].values():
        smaller(features, "size")
        if "model" in features:
            features["model"] = smallest(features["model"])
    for fit in config.get("fits", {}).values():
        fit["dim"] = min(fit.get("dim", 16), 16)
    for backbone in config.get("backbones", {}).values():
        backbone |= {"steps": 2, "batch_size": BATCH} if "steps" in backbone else {"epochs": 1}
        backbone["architecture"] = smallest(backbone["architecture"])
    if "black_box" in config:
        space = {name: tried[:2] for name, tried in config["black_box"].get("space", {}).items() if name != "steps"}
        config["black_box"] |= {"models": 10, "pilot": 2, "records": ATTACKED, "space": space | {"steps": [2]}}
    changes = [*config["methods"].values(), *(override["set"] for override in config.get("overrides", []))]
    for options in changes:
        for key, few in (("epochs", 1), ("curve_points", 1), ("steps", 2)):
            if key in options:
                options[key] = few
        if "network" in options:
            options["network"] = smallest(options["network"])
        if "devices" in options:
            options["devices"] = 2
        if "noise_multiplier" in options:  # for so few records
            options |= {"steps": 2, "noise_multiplier": max(2.0, options["noise_multiplier"])}
        if "augmentation" in options:
            options["augmentation"]["multiplicity"] = min(2, options["augmentation"]["multiplicity"])
            smaller(options["augmentation"], "crop")
        if options.get("batch_size", "full") != "full":
            options["batch_size"] = BATCH
        tuning = options.get("tuning", {})
        if "trials" in tuning:
            tuning["trials"] = 2
            if "choices" in tuning["space"].get("batch_size", {}):  # of so few records no larger one can be made
                tuning["space"]["batch_size"] = {"choices": [BATCH]}
        if tuning.get("sampler", "grid") == "grid" and "space" in tuning:  # an override may name the space alone
            tuning["space"] = {name: {"choices": fewest(name, of["choices"])} for name, of in tuning["space"].items()}
    return config


def smallest(network: str) -> str:
    """The network of the same kind with fewest weights."""
    for kind, least in ((r"^(wrn-)\d+-\d+", "10-1"), (r"(nf.resnet-?)\d+$", "26"), (r"(nfnet_f)\d$", "0")):
        network = re.sub(kind, rf"\g<1>{least}", network)
    return network


def smaller(options: dict, key: str) -> None:
    """Images of a fraction of the height and width."""
    if isinstance(options.get(key), list):
        options[key] = [length // SMALLER for length in options[key]]


def fewest(name: str, choices: list) -> list:
    return {"epochs": [1], "batch_size": [BATCH], "steps": [2]}.get(name, choices[:2])


def transferred(study: StudyFolder, validation: bool) -> None:
    """A ResNeXt-29 that learned nothing, and features of another network, in the order of each split."""
    folder, random = study.path / "data", np.random.default_rng(1)
    (folder / "networks").mkdir()
    save_file(ResNeXt29(100).state_dict(), folder / "networks" / "resnext29-8x64d-cifar100.safetensors")
    (folder / "cifar10-simclrv2").mkdir()
    splits = ["train", "test", *(["validation"] if validation else [])]
    manifests = [f"results/data/cifar10/{split}/manifest.json" for split in splits]
    assert study.snakemake("--cores", "2", *manifests).returncode == 0
    for split, manifest in zip(splits, manifests, strict=True):
        rows = read_json(study.path / manifest)["rows"]
        np.save(folder / "cifar10-simclrv2" / f"{split}.npy", random.random((rows, 4096), np.float32))


@pytest.mark.parametrize("name", STUDIES)
def test_a_shrunk_study_runs_whole(name, tmp_path):
    if name not in ALWAYS and "DPSTUDY_STUDIES" not in os.environ:
        pytest.skip("a command of its own: DPSTUDY_STUDIES=1")
    config = shrunk(read_config(ROOT / "studies" / f"{name}.yaml"))
    study = make_folder(tmp_path / "study")
    made_up(study.path / "data")
    study.write_config(config)
    folders_of_images(study.path / "data", config["datasets"])
    untrained(study.path / "data", config)
    if name in ("tramer2021-transfer", "tramer2021-transfer-search"):
        transferred(study, validation=name.endswith("search"))
    result = study.snakemake("--cores", "2", timeout=3000)
    assert result.returncode == 0, result.stdout + result.stderr
    check_whole(study, config)


def all_protected(entry: str, ledger: dict) -> bool:
    """Whether 99 % of so few records are all of them: where the last batch has more than the hundredth."""
    if entry != "iteration-for-99-percent":
        return True
    (event,) = (event for event in ledger["events"] if event["mechanism"] == ITERATED)
    batches = event["count"] // event["params"]["epochs"]
    return 1 - event["sampling_rate"] * (batches - 1) > 0.01


def check_whole(study: StudyFolder, config: dict) -> None:
    results = study.path / "results"
    full = load(copy.deepcopy(config))
    for cell in unfold(full):
        ledger, metrics = (read_json(results / "cells" / cell.path / f"{kind}.json") for kind in ("ledger", "metrics"))
        assert [row["seed"] for row in metrics["seeds"]] == [0]
        assert (ledger["guarantee"] == "none") == (cell.epsilon == "inf"), cell
        beyond = cell.entry.endswith("shuffle") or not all_protected(cell.entry, ledger)
        if cell.epsilon != "inf":
            floored = full["datasets"][cell.dataset]["reader"] == "cifar" and "normalisation" in cell.options(full)
            assert floored == any("least variance" in sentence for sentence in ledger["not_accounted"]), cell
            more = ledger["epsilon"] > float(cell.epsilon)
            few = config["study"].startswith(
                "de2022"
            )  # steps: no record is dealt twice, so that shuffling costs nothing
            assert more == beyond or (few and beyond), (cell, ledger["epsilon"])
    for name in config.get("tables", {}):
        assert (results / "tables" / f"{name}.tex").stat().st_size
        assert len((results / "tables" / f"{name}.csv").read_text().splitlines()) > 1, name
    for name in config.get("figures", {}):
        assert (results / "figures" / f"{name}.pdf").read_bytes().startswith(b"%PDF")
        assert len((results / "figures" / f"{name}.csv").read_text().splitlines()) > 1, name
    assert (results / "report" / "index.html").stat().st_size
