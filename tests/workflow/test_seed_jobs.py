"""Deep entries in the real workflow: each seed is a job, a killed one goes on, a new one leaves the others alone."""

import copy
import json
import shutil

import numpy as np
import psutil
import pytest

from dpstudy.core.files import read_json, read_table
from dpstudy.evaluation.score_file import read_scores
from tests.workflow.conftest import TINY, StudyFolder, make_folder
from tests.workflow.kills import Run, wait_until, workers_of
from tests.workflow.test_status import status

CELL = "digits/images/wrn/eps=2"
RANK = "dpstudy.jobs.rank"
STUDY = TINY | {
    "datasets": {"digits": {"reader": "digits", "splits": {"test": 0.2}, "delta": "1e-4"}},
    "features": {"images": {"extractor": "images"}},  # networks read results/data
    "public": {},
    "backbones": {},
    "methods": {
        "wrn": {
            "method": "network_dpsgd",
            "network": "wrn-10-1",
            "learning_rate": 1.0,
            "clipping_norm": 1.0,
            "batch_size": 128,
            "steps": 6,
            "curve_points": 3,
            "moving_average": 0.9,
            "augmentation": {"multiplicity": 2, "pad": 1, "flip": False},
            "checkpoint_minutes": 0,
        }
    },
    "epsilons": ["2"],
    "seeds": [0, 1],
    "tables": {},
    "figures": {},
}
SEEDLESS = ("ledger.json", "model.safetensors")


def made(folder, config) -> StudyFolder:
    study = make_folder(folder)
    study.write_config(config)
    return study


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> StudyFolder:
    """The study, uninterrupted."""
    study = made(tmp_path_factory.mktemp("seeds") / "study", STUDY)
    result = study.snakemake()
    assert result.returncode == 0, result.stdout + result.stderr
    return study


def without_seconds(path) -> dict:
    metrics = read_json(path)
    rows = [{key: value for key, value in row.items() if key != "seconds"} for row in metrics["seeds"]]
    return metrics | {"seeds": rows}


def test_the_cell_is_its_seeds_together(whole):
    cell, runs = whole.path / "results/cells" / CELL, whole.path / "results/runs" / CELL
    run, metrics = (read_json(cell / f"{name}.json") for name in ("run", "metrics"))
    assert run["seeds"] == [read_json(runs / f"seed={seed}" / "run.json")["seeds"][0] for seed in (0, 1)]
    for row, seed in zip(metrics["seeds"], (0, 1), strict=True):
        kept = runs / f"seed={seed}" / "scores.parquet"
        (given,) = read_scores(kept)
        assert kept.stat().st_mode & 0o077 == 0, "labels of test records may be private"
        assert given.seed == row["seed"] == seed
        assert row["top1"] == pytest.approx(100 * np.mean(given.scores.argmax(1) == given.labels))
    first, second = (row["top1"] for row in metrics["seeds"])
    assert first != second and metrics["mean"]["top1"] == pytest.approx((first + second) / 2)
    for name in SEEDLESS:
        assert (cell / name).read_bytes() == (runs / "seed=0" / name).read_bytes()
    curve = read_table(cell / "curve.parquet").to_pydict()
    assert curve["seed"] == 9 * [0] + 9 * [1] and curve["step"] == 2 * [2, 2, 2, 4, 4, 4, 6, 6, 6]
    assert not list(runs.rglob("checkpoint*"))
    ledger = json.loads((cell / "ledger.json").read_text())
    assert [(event["name"], event["count"]) for event in ledger["events"]] == [("gradient", 6)]
    assert whole.read("summary.csv").count(b",wrn,") == 2
    assert not (whole.path / "results/features").exists()


def test_a_new_seed_trains_alone(whole, tmp_path):
    study = StudyFolder(tmp_path / "study")
    shutil.copytree(whole.path, study.path, copy_function=shutil.copy2)
    assert study.planned() == []
    study.write_config(STUDY | {"seeds": [0, 1, 5]})
    planned = study.planned()
    assert [output for rule, output in planned if rule == "train_seed"] == [f"results/runs/{CELL}/seed=5/run.json"]
    assert {
        ("gather_cell", f"results/cells/{CELL}/run.json"),
        ("score_cell", f"results/cells/{CELL}/metrics.json"),
    } < set(planned)
    book = study.path / "results/privacy/spent.jsonl"
    book.parent.mkdir(exist_ok=True)
    ledger = read_json(study.path / f"results/cells/{CELL}/ledger.json")
    line = {"when": "2026-01-01", "dataset": "digits", "cell": CELL, "ledger": ledger}
    paid = [json.dumps(line | {"seed": seed}) + "\n" for seed in (0, 1, 5)]
    book.write_text("".join(paid[:2]))
    assert "runs them on this machine" in status(study)
    book.write_text("".join(paid))
    assert "\n1 of the cells were trained with secure noise" in status(study)
    book.unlink()
    study.write_config(STUDY | {"seeds": [1]})
    assert [rule for rule, _ in study.planned() if rule.startswith(("train", "gather"))] == ["gather_cell"]


def test_a_killed_seed_goes_on_from_its_checkpoint(whole, tmp_path):
    study = made(tmp_path / "study", STUDY)
    run = Run(study, "--cores", "1")
    checkpoint = study.path / "results/runs" / CELL / "seed=0" / "checkpoint.safetensors"
    wait_until(checkpoint.exists, run)
    run.kill_all()
    assert checkpoint.exists() and not (checkpoint.parent / "run.json").exists()
    assert Run(study).wait() == 0
    assert "goes on after step" in (study.path / f"results/logs/train_seed/{CELL}/seed=0.log").read_text()
    for folder in (f"cells/{CELL}", f"runs/{CELL}/seed=0", f"runs/{CELL}/seed=1"):
        one, other = (base.path / "results" / folder for base in (study, whole))
        assert without_seconds(one / "run.json") == without_seconds(other / "run.json")
        for name in (*SEEDLESS, "curve.parquet"):
            assert (one / name).read_bytes() == (other / name).read_bytes(), f"{folder}/{name}"


def test_a_killed_worker_of_a_shared_training_is_told_and_it_goes_on_from_its_checkpoint(tmp_path):
    """Two processes train a cell, one of which is killed, then their job; they end where they would have ended."""
    config = copy.deepcopy(STUDY) | {"seeds": [0]}
    config["methods"]["wrn"] |= {"devices": 2, "batch_size": "full"}  # whose noise each process finds at once
    config["datasets"]["digits"]["splits"]["records"] = 120
    whole, study = made(tmp_path / "whole", config), made(tmp_path / "study", config)
    wanted = f"results/runs/{CELL}/seed=0/run.json"
    assert Run(whole, wanted).wait() == 0
    checkpoint = study.path / "results/runs" / CELL / "seed=0" / "checkpoint.safetensors"
    run = Run(study, wanted)
    wait_until(checkpoint.exists, run)
    first, second = sorted(workers_of(run, RANK), key=lambda process: process.pid)
    second.kill()
    assert run.wait() == 1
    sentence = "dpstudy: one of the 2 processes that share this job was ended by SIGKILL"
    assert sentence in run.said() and "Traceback" not in run.said()
    assert sentence.removeprefix("dpstudy: ") in (study.path / f"results/logs/train_seed/{CELL}/seed=0.log").read_text()
    assert checkpoint.exists() and not (checkpoint.parent / "run.json").exists()
    again = Run(study, wanted)
    wait_until(lambda: len(workers_of(again, RANK)) == 2, again)
    workers = workers_of(again, RANK)
    (script,) = [process for process in again.alive() if ".snakemake/scripts" in " ".join(process.cmdline())]
    script.kill()
    assert not psutil.wait_procs(workers, 5)[1], "they train on without a job"
    assert again.wait() == 1
    last = Run(study, wanted)
    assert last.wait() == 0, last.said()
    assert "goes on after step" in (study.path / f"results/logs/train_seed/{CELL}/seed=0.log").read_text()
    for name in (*SEEDLESS, "curve.parquet"):  # one process may end elsewhere: the steps amplify the rounding of sums
        one, other = (base.path / "results/runs" / CELL / "seed=0" / name for base in (whole, study))
        assert one.read_bytes() == other.read_bytes(), name
