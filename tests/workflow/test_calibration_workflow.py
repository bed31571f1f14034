"""Calibrated models in the real workflow: from secure noise on persons' images to a bundle that gives probabilities."""

import copy
import csv
import subprocess
import sys

import pytest
from PIL import Image

from dpstudy.core.files import read_json
from dpstudy.evaluation.score_file import read_scores
from dpstudy.models.kinds import load_model
from tests.workflow.clinic import CONFIG, write_clinic
from tests.workflow.conftest import make_folder
from tests.workflow.test_paid_models import succeeds
from tests.workflow.test_status import status

pytestmark = pytest.mark.slow
ENTRIES = ("least-squares", "dp-sgd")


def cell(entry):
    return f"clinic/pixels/{entry}/eps=20"


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    study, config = make_folder(tmp_path_factory.mktemp("calibration") / "study"), copy.deepcopy(CONFIG)
    write_clinic(study.path / "data/clinic")
    config["datasets"]["clinic"]["test_split"] = "public"
    config |= {"epsilons": ["20"], "evaluation": {"metrics": ["top1", "sensitivity_90", "ece", "brier"]}}
    for entry in ENTRIES:
        config["methods"][entry]["calibration"] = 0.4
    config["methods"]["by-test-records"] = config["methods"]["least-squares"] | {"calibration": "test"}
    study.write_config(config)
    succeeds(study.snakemake("results/summary.csv", f"results/release/{cell('least-squares')}"))
    return study, config


@pytest.mark.parametrize("entry", ENTRIES)
def test_the_ledger_has_it_and_metrics_say_what_it_did(finished, entry):
    study, _ = finished
    folder = study.path / "results/cells" / cell(entry)
    ledger, metrics = read_json(folder / "ledger.json"), read_json(folder / "metrics.json")
    events = {event["name"]: event for event in ledger["events"]}
    assert events["calibration_scale"]["sensitivity"] == 2 and events["calibration"]["count"] == 5
    assert events["calibration"]["sensitivity"] == pytest.approx(2 * 3**0.5), "two records of a person"
    assert 19.5 < ledger["epsilon"] <= 20 and ledger["guarantee"] == "proved"
    (row,) = metrics["seeds"]
    assert row["releases"]["calibration"] == 5 and row["before"].keys() == {"ece", "brier"}
    model = load_model(folder / "model.safetensors")
    assert model.metadata["calibration_slope"] == repr(row["calibration"]["slope"])
    (given,) = read_scores(folder / "scores.parquet")
    assert given.scores.shape[1] == 2 and row["ece"] >= 0


def test_public_test_records_calibrate_for_nothing_and_are_not_scored(finished):
    study, _ = finished
    folders = [study.path / "results/cells" / cell(entry) for entry in ("by-test-records", "least-squares")]
    ledgers, metrics = ([read_json(folder / f"{what}.json") for folder in folders] for what in ("ledger", "metrics"))
    assert [event["name"] for event in ledgers[0]["events"]] == ["gram", "targets"]
    assert 19.5 < ledgers[0]["epsilon"] <= 20 and ledgers[0]["guarantee"] == "proved"
    (own,), (other,) = (each["seeds"] for each in metrics)
    assert own["calibration"]["on"] == "test" and "on" not in other["calibration"]
    assert 0 < own["tested"]["records"] < other["tested"]["records"]
    assert own["before"].keys() == {"ece", "brier"}


def test_another_share_makes_its_entry_stale_alone(finished):
    study, config = finished
    changed = copy.deepcopy(config)
    changed["methods"]["dp-sgd"]["calibration"] = 0.45
    study.write_config(changed)
    said = status(study)
    study.write_config(config)
    assert said.startswith("cells: 2 done, 1 stale, 0 missing\n") and f"stale   {cell('dp-sgd')}" in said
    assert status(study).startswith("cells: 3 done, 0 stale, 0 missing\n")


def test_the_bundle_gives_probabilities_and_names_images_of_another_kind(finished, tmp_path):
    study, _ = finished
    bundle = study.path / "results/release" / cell("least-squares")
    Image.new("RGB", (6, 9), (200, 10, 10)).save(tmp_path / "odd.png")
    picture = study.path / "data/clinic/images/3.png"
    command = [sys.executable, "-I", bundle / "predict.py", picture, tmp_path / "odd.png"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(done.stdout.splitlines()))
    for row in rows:
        assert float(row["a"]) + float(row["b"]) == pytest.approx(1, abs=1e-5)
        assert row["predicted"] == ("a" if float(row["a"]) >= float(row["b"]) else "b")
    assert "odd.png is in colour, and the model learned from grey images" in done.stderr
    assert "odd.png has 9 x 6 pixels, fewer than the 8 x 8" in done.stderr and "3.png" not in done.stderr
    rarer = subprocess.run([*command, "--prevalence", "b=0.001"], capture_output=True, text=True, check=True)
    for row, before in zip(csv.DictReader(rarer.stdout.splitlines()), rows, strict=True):
        assert float(row["b"]) < 0.1 * float(before["b"]) + 1e-6
    wrong = subprocess.run([*command, "--prevalence", "c=0.1"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 1 and wrong.stderr == "predict.py: --prevalence: no class 'c'; there are a, b\n"
    card = (bundle / "README.md").read_text()
    assert "a probability for each class" in card and "Before its scores were calibrated: expected cal" in card
    verified = subprocess.run([sys.executable, "-I", bundle / "verify.py"], capture_output=True, text=True, check=False)
    assert verified.returncode == 0, verified.stdout + verified.stderr


def test_where_it_cannot_be_paid_the_config_is_refused(finished):
    study, config = finished
    changed = copy.deepcopy(config)
    changed["methods"]["least-squares"]["shared_noise"] = True
    changed["noise"] = "seeded"
    study.write_config(changed)
    refused = study.snakemake("results/summary.csv")
    assert refused.returncode and "methods.least-squares.calibration: there is no proved guarantee" in refused.stderr
    study.write_config(config)
