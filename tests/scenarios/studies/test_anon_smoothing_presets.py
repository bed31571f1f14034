"""anon_smoothing's studies have its settings (sections 1, 3.2, 4.2, 4.3); its Table 1 stands beside their cells."""

import csv
import re
from pathlib import Path

import pytest

from dpstudy.config.cells import unfold
from dpstudy.config.loading import read_study
from dpstudy.tables.claims.names import roles_of

ROOT = Path(__file__).parents[3]
MODELS = {"resnet18": "resnet18.", "resnet50": "resnetv2_50", "vit-b16": "vit_base_patch16", "densenet": "densenet121"}
LABELS = {"resnet18": "ResNet18", "resnet50": "ResNet50", "vit-b16": "ViT-B/16", "densenet": "DenseNet"}
PRINTED = {"dp-sgd": "DP-SGD", "smoothing": "instance-smoothing"}
ROLES = {"instance-smoothing": "smoothing", "dp-sgd": "dp-sgd", "nonprivate": "smoothing", "kernel-mean": "kernel-mean"}


def loaded(study):
    return read_study(ROOT / "studies" / f"{study}.yaml")


@pytest.mark.parametrize(("study", "delta"), [("smoothing", "1e-5"), ("smoothing-chexpert", "1e-6")])
def test_settings_are_those_of_the_paper(study, delta):
    config = loaded(study)
    assert {dataset["delta"] for dataset in config["datasets"].values()} == {delta}
    entries = {cell.entry: cell.options(config) for cell in unfold(config) if cell.epsilon != "inf"}
    wanted = {"projected_dim": 64, "margin": 10, "neighbours": 5, "batch_size": 4096, "noised": "training"}
    for entry, sensitivity in (("smoothing", "density"), ("smoothing-share", "share")):
        assert wanted.items() <= entries[entry].items() and entries[entry]["sensitivity"] == sensitivity
    assert {**entries["smoothing-share"], "sensitivity": "density"} == entries["smoothing"], "alike but for that"
    assert (entries["dp-sgd"]["method"], entries["dp-sgd"]["batch_size"]) == ("first_order", 4096)
    for name, options in config["features"].items():
        assert options["model"].startswith(MODELS[name]) and options["normalise"] == "l2", name
    if study == "smoothing-chexpert":
        for dataset in config["datasets"].values():
            assert (dataset["uncertain"], dataset["positives"]) == ("ones", 5), "five findings, each a label of its own"


def test_every_number_of_table_1_stands_beside_its_cell():
    config = loaded("smoothing")
    spec = config["tables"]["table-1"]
    with (ROOT / "workflow/published/results.csv").open(encoding="utf-8") as file:
        printed = [row for row in csv.DictReader(file) if (row["paper"], row["table"]) == ("anon_smoothing", "1")]
    for column in spec["columns"]:
        assert column["label"] == LABELS[column["features"]]
        assert column.get("published", {"model": column["label"]}) == {"model": column["label"]}
    seen = set()
    for row in spec["rows"]:
        said = re.search(r"ε = (\d+)", row["label"])
        assert row["epsilon"] == (said[1] if said else "inf"), row
        if "published" in row:
            method = "non-private" if row["epsilon"] == "inf" else PRINTED[row["entry"]]
            assert row["published"]["method"] == method and row["published"]["table"] == "1"
            seen.add((method, row["epsilon"]))
    assert seen == {(row["method"], row["epsilon"]) for row in printed}
    models = {column["published"]["model"] for column in spec["columns"] if "published" in column}
    assert models == {row["model"] for row in printed}


@pytest.mark.parametrize("study", ["smoothing", "smoothing-chexpert", "smoothing-cifar10"])
def test_roles_are_of_the_entries_that_they_name_and_run_from_the_smallest_network(study):
    config = loaded(study)
    found = list(roles_of(config["tables"]["claims"]))
    assert {role for _, role, *_ in found} == ROLES.keys()
    order = ["resnet18", "resnet50", "vit-b16"] if study != "smoothing-cifar10" else ["less", "more"]
    for role, entry in ROLES.items():
        assert {used for _, name, _, used in found if name == role} == {entry}, role
        used = [features for _, name, features, _ in found if name == role]
        assert used == [name for name in order if name in used] and len(used) >= 2, role
