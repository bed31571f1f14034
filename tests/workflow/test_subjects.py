"""Persons as units of privacy, in the real workflow: how many there are, what a ledger says, what a cap reruns."""

import copy
import csv
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from dpstudy.core.files import read_tensors
from dpstudy.data import shards
from dpstudy.features import shards as features
from tests.workflow.clinic import CONFIG
from tests.workflow.conftest import copy_of
from tests.workflow.test_status import status

CELLS = "results/cells/clinic/pixels/{}/eps=2/ledger.json"
OF_PATIENTS = {"records": 2, "persons": "patient"}  # what a ledger says of the unit


@pytest.fixture(scope="module")
def clinic(finished_clinic, tmp_path_factory):
    study = copy_of(finished_clinic, tmp_path_factory.mktemp("clinic") / "study")
    study.write_config(CONFIG)
    return study


def ledger(study, entry):
    return json.loads((study.path / CELLS.format(entry)).read_text())


def test_the_ledger_is_about_subjects_and_no_subject_has_more_than_its_share(clinic):
    train, test = (shards.load(clinic.path / "results" / "data" / "clinic" / split) for split in ("train", "test"))
    names, counts = np.unique(train.subjects.astype(str), return_counts=True)
    assert counts.max() == 2 and not set(names) & set(test.subjects)
    assert np.unique(test.subjects.astype(str), return_counts=True)[1].max() > 2  # all of the test split is scored
    for entry, sensitivities in (("least-squares", [2, 2]), ("dp-sgd", [2])):
        found = ledger(clinic, entry)
        assert (found["unit"], found["n"], found["guarantee"]) == ("subject", len(names), "proved")
        assert [event["sensitivity"] for event in found["events"]] == pytest.approx(sensitivities)
        assert found["epsilon"] <= 2 and found["not_accounted"] == [] and found["bounds"] == OF_PATIENTS
    (event,) = ledger(clinic, "dp-sgd")["events"]
    assert event["sampling"] == "poisson" and event["sampling_rate"] == pytest.approx(20 / len(names))


def test_metrics_have_groups_labels_and_intervals(clinic):
    test = shards.load(clinic.path / "results" / "data" / "clinic" / "test")
    path = clinic.path / CELLS.format("least-squares").replace("ledger", "metrics")
    (row,) = json.loads(path.read_text())["seeds"]
    assert row["top1_low"] <= row["top1"] <= row["top1_high"] and "auc_low" in row
    assert set(row["groups"]) == {"sex=f", "sex=m", "label=a", "label=b"}
    for name in "fm":
        assert row["groups"][f"sex={name}"]["n"] == (test.groups["sex"] == name).sum()
    assert row["groups"]["label=a"]["n"] + row["groups"]["label=b"]["n"] == len(test)


def test_another_metric_of_a_paid_model_trains_and_spends_nothing(clinic):
    target = CELLS.format("least-squares").replace("ledger", "metrics")
    paid = {name: clinic.read(name) for name in ("privacy/spent.jsonl", target.removeprefix("results/"))}
    asked = CONFIG["evaluation"] | {"metrics": ["top1", "auc", "balanced_accuracy"], "smallest_group": 1000}
    clinic.write_config(CONFIG | {"evaluation": asked})
    assert [rule for rule, _ in clinic.planned(target)] == ["score_cell"]
    result = clinic.snakemake(target)
    (row,) = json.loads(clinic.read(target.removeprefix("results/")))["seeds"]
    assert result.returncode == 0 and {"balanced_accuracy", "auc_low"} < row.keys() and "groups" not in row
    clinic.write_config(CONFIG)
    again = clinic.snakemake(target)
    assert again.returncode == 0
    assert paid == {name: clinic.read(name) for name in paid}, "the same scores, judged as they were"


def test_a_bundle_predicts_and_is_not_made_of_a_cell_that_is_not_for_release(clinic):
    bundle = "results/release/clinic/pixels/least-squares/eps=2"
    result = clinic.snakemake(bundle)
    assert result.returncode == 0, result.stdout + result.stderr
    folder = clinic.path / bundle
    statement = (folder / "PRIVACY.md").read_text()
    assert "one person with all of that person's records" in statement
    assert "**Replayed**: Trained with the same settings on 64 made-up records" in statement
    assert "No score is given: the test split holds private records" in (folder / "README.md").read_text()
    images = [str(clinic.path / "data" / "clinic" / "images" / f"{number}.png") for number in (0, 1)]
    command = [sys.executable, "-I", str(folder / "predict.py"), *images]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert [line.split(",")[0] for line in done.stdout.splitlines()] == ["image", *images]
    assert (clinic.path / "results/cells/clinic/pixels/least-squares/eps=2/scores.parquet").stat().st_mode & 0o077 == 0
    assert "scores.parquet" not in {path.name for path in folder.rglob("*")}
    closed = {path.name for path in folder.rglob("*") if path.stat().st_mode & 0o044 != 0o044}
    assert closed <= {".snakemake_timestamp"}  # all else is to be copied and given away
    (entry, _) = [json.loads(line) for line in clinic.read("privacy/spent.jsonl").decode().splitlines()]
    assert entry["ledger"]["unit"] == "subject"
    config = copy.deepcopy(CONFIG)
    config["noise"] = "seeded"
    clinic.write_config(config)
    refused = clinic.snakemake(bundle)
    assert refused.returncode and "this run would train another in its place" in refused.stderr
    clinic.write_config(config | {"release": {"spend_again": True, "budget": "1000"}})
    refused = clinic.snakemake(bundle)
    clinic.write_config(CONFIG)
    assert refused.returncode and "not for release: its noise is seeded" in refused.stderr


def test_a_bundle_has_no_other_cell_trained(clinic):
    """Each training spends privacy: what was not asked for must not run."""
    clinic.write_config(CONFIG | {"epsilons": ["2", "4"]})
    planned = clinic.planned("results/release/clinic/pixels/least-squares/eps=4")
    clinic.write_config(CONFIG)
    trained = [target for rule, target in planned if rule.startswith("train_")]
    assert trained == ["results/cells/clinic/pixels/least-squares/eps=4/run.json"]
    assert planned[-1][0] == "write_bundle" and "certify_cells" not in {rule for rule, _ in planned}


def test_an_image_that_was_replaced_is_read_again(clinic):
    """Who withdrew must not stay in: a replaced picture makes shards, and all that is made of them, stale."""
    features = "results/features/clinic/pixels/train/manifest.json"
    assert clinic.planned(features) == []
    image = clinic.path / "data" / "clinic" / "images" / "7.png"
    content, kept = image.read_bytes(), image.stat()
    Image.fromarray(np.zeros((8, 8), np.uint8)).save(image)
    rules = {rule for rule, _ in clinic.planned(features)}
    image.write_bytes(content)
    os.utime(image, ns=(kept.st_atime_ns, kept.st_mtime_ns))
    assert {"prepare_shard", "extract_shard"} <= rules and clinic.planned(features) == []


def test_nobody_but_the_owner_reaches_what_came_of_private_records(clinic):
    results = clinic.path / "results"
    assert results.stat().st_mode & 0o077 == 0 == (clinic.path / ".snakemake").stat().st_mode & 0o077
    # Snakemake opens its records to the group, whatever the umask; the folder around them is closed.
    beside = {results / "release", results / "records"}
    found = [path for path in results.rglob("*") if beside.isdisjoint(path.parents)]
    assert results / "records" in found
    assert not [path for path in found if path.stat().st_mode & 0o077]
    kinds = {f"{path.relative_to(results).parts[0]}/*{path.suffix}" for path in found if path.is_file()}
    assert kinds >= {
        "data/*.json",
        "features/*.json",
        "cells/*.json",
        "cells/*.parquet",
        "logs/*.log",
        "benchmarks/*.tsv",
    }


def test_a_cell_is_not_trained_again_with_secure_noise_in_silence(clinic):
    """Nor is the model lost that was paid for: Snakemake removes what a job shall make before the job can object."""
    config = copy.deepcopy(CONFIG)
    config["methods"]["dp-sgd"]["steps"] = 6
    clinic.write_config(config)
    folder = (clinic.path / CELLS.format("dp-sgd")).parent
    paid = {path.name: path.read_bytes() for path in folder.iterdir()}
    refused = clinic.snakemake(CELLS.format("dp-sgd"))
    assert refused.returncode and "nothing was run: cell clinic/pixels/dp-sgd/eps=2: it was trained" in refused.stderr
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == paid and "model.safetensors" in paid
    told = status(clinic)
    assert " of the cells were trained with secure noise, and will not be again" in told and "runs them" not in told
    clinic.write_config(config | {"release": {"spend_again": True, "budget": "1000"}})
    again = clinic.snakemake(CELLS.format("dp-sgd"))
    assert again.returncode == 0, again.stdout + again.stderr
    assert len(clinic.read("privacy/spent.jsonl").splitlines()) == 3
    clinic.write_config(CONFIG)


def test_another_cap_reads_anew_and_a_weak_delta_is_refused_by_the_number_of_subjects(clinic):
    config = copy.deepcopy(CONFIG) | {"release": {"spend_again": True, "budget": "1000"}}
    config["datasets"]["clinic"]["per_subject"] = 1
    clinic.write_config(config)
    rules = {rule for rule, _ in clinic.planned(CELLS.format("dp-sgd"))}
    assert {"prepare_shard", "extract_shard", "train_stepped"} <= rules
    config["datasets"]["clinic"] |= {"per_subject": 2, "delta": "0.03"}
    clinic.write_config(config)
    result = clinic.snakemake(CELLS.format("least-squares"))
    assert result.returncode and "0.03 is not below 1/n = 1/" in result.stderr and "so many subjects" in result.stderr
    config["datasets"]["clinic"]["per_subject"] = 1  # where images are read anyway, it is told before that
    clinic.write_config(config)
    result = clinic.snakemake(CELLS.format("least-squares"))
    assert (
        "nothing was run: data set 'clinic': " in result.stderr or "nothing was run: datasets.clinic" in result.stderr
    )
    assert "0.03 is not below 1/n = 1/" in result.stderr and "rule prepare_shard:" not in result.stderr
    config["datasets"]["clinic"] |= {"delta": "1e-3", "subject_column": "person"}
    clinic.write_config(config)
    result = clinic.snakemake(CELLS.format("least-squares"))
    assert "nothing was run: " in result.stderr and "'person'" in result.stderr
    assert "rule prepare_shard:" not in result.stderr
    clinic.write_config(CONFIG)


def test_averages_charge_a_person_as_one_record(clinic):
    """Sums are made in shares, each of which has a part of a person's records; one class counts for half as much."""
    config = copy.deepcopy(CONFIG) | {"noise": "seeded", "release": {"spend_again": True, "budget": "1000"}}
    config["datasets"]["clinic"] |= {"contributions": "average", "per_subject": 3, "sum_jobs": 2}
    config["datasets"]["clinic"]["class_weights"] = {"b": 0.5}
    clinic.write_config(config)
    entries = {"least-squares": [1, 1], "dp-sgd": [1]}
    done = clinic.snakemake(
        "results/privacy/certificates/clinic.json", *map(CELLS.format, entries)
    )  # replayed, and ledgers held against the config
    assert done.returncode == 0, done.stdout + done.stderr
    train = features.load(clinic.path / "results" / "features" / "clinic" / "pixels" / "train")
    assert train.counts.tolist() == [(train.subjects == name).sum() for name in train.subjects]
    assert {1, 2, 3} == set(train.counts)
    gram = np.zeros((64, 64))
    for name in set(train.subjects):
        rows = train.features[train.subjects == name].astype(np.float64)
        weights = np.where(train.labels[train.subjects == name] == 1, 0.5, 1.0)
        gram += (rows * weights[:, None]).T @ rows / len(rows)
    (path,) = (clinic.path / "results/private/statistics/clinic").rglob("shared.safetensors")
    np.testing.assert_allclose(read_tensors(path)["gram"], gram, atol=1e-4)
    for entry, sensitivities in entries.items():
        found = ledger(clinic, entry)
        assert [event["sensitivity"] for event in found["events"]] == pytest.approx(sensitivities)
        assert found["n"] == len(set(train.subjects)) and found["bounds"] == OF_PATIENTS | {
            "records": 3,
            "contributions": "average",
        }
        assert any("weights of their classes" in sentence for sentence in found["not_accounted"])
    clinic.write_config(CONFIG)


def test_labels_beyond_the_most_are_refused_or_dropped_as_told(clinic):
    """Two of three findings, in training alone; another number reads anew only where it cuts."""
    config = copy.deepcopy(CONFIG)
    table = clinic.path / "data" / "clinic" / "findings.csv"
    rows = list(csv.DictReader(open(clinic.path / "data" / "clinic" / "table.csv", newline="")))
    with open(table, "w", newline="") as file:
        writer = csv.DictWriter(file, ["path", "patient", "a", "b", "c"])
        writer.writeheader()
        writer.writerows(
            {"path": row["path"], "patient": row["patient"], "a": 1, "b": number % 2, "c": number % 3 // 2}
            for number, row in enumerate(rows)
        )
    dataset = config["datasets"]["clinic"]
    del dataset["label_column"], dataset["classes"], dataset["group_columns"]
    dataset |= {"table": "findings.csv", "label_columns": ["a", "b", "c"], "positives": 2}
    config["methods"].pop("dp-sgd")
    config["evaluation"] = {"metrics": ["auc"]}
    config["study"], config["release"] = "findings", {"spend_again": True, "budget": "1000"}
    clinic.write_config(config)
    refused = clinic.snakemake(CELLS.format("least-squares"))
    assert refused.returncode and "3 positive labels, but `positives` declares at most 2" in refused.stderr
    assert "rule extract_shard:" not in refused.stderr  # told before features are made
    dataset["beyond"] = "truncate"
    clinic.write_config(config)
    result = clinic.snakemake(CELLS.format("least-squares"))
    assert result.returncode == 0, result.stdout + result.stderr
    train, test = (shards.load(clinic.path / "results" / "data" / "clinic" / split) for split in ("train", "test"))
    assert train.labels.sum(1).max() == 2 and test.labels.sum(1).max() == 3
    (sentence,) = ledger(clinic, "least-squares")["not_accounted"]
    assert sentence.startswith("Of a training record with more than 2 positive labels, 2 were kept")
    assert ledger(clinic, "least-squares")["bounds"] == OF_PATIENTS | {"positives": 2, "beyond": "truncate"}
    dataset |= {"beyond": "refuse", "positives": 3}
    clinic.write_config(config)
    result = clinic.snakemake(CELLS.format("least-squares"))
    assert result.returncode == 0, result.stdout + result.stderr
    assert ledger(clinic, "least-squares")["bounds"] == OF_PATIENTS | {"positives": 3, "beyond": "refuse"}
