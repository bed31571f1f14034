"""De-duplication by alignment, run by the real Snakefile."""

import copy
import json

import pytest

from dpstudy.core.files import read_table
from tests.workflow.conftest import StudyFolder, make_folder

KINDS = {"reader": "scenes", "kinds": 2}
ALIGNED = {
    "study": "aligned",
    "datasets": {"own": KINDS | {"count": 60, "splits": {"test": 0.5}, "shards": 2, "delta": "1e-4"}},
    "public": {
        "web": KINDS | {"count": 50, "seed": 1, "shards": 2, "plant": {"dataset": "own", "split": "test", "count": 6}},
        "drawn": KINDS | {"count": 40, "seed": 2},
    },
    "dedup": {"sample": 10},
    "backbones": {"cnn": {"architecture": "small_cnn", "public": "drawn", "width": 8, "embedding": 16, "epochs": 1}},
    "features": {"pixels": {"extractor": "pixels"}, "cnn": {"extractor": "backbone", "backbone": "cnn"}},
    "methods": {"ls": {"method": "least_squares"}},
    "epsilons": ["1"],
    "seeds": [0],
}
KEPT = "results/dedup/{}/kept.parquet"


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> StudyFolder:
    folder = make_folder(tmp_path_factory.mktemp("aligned") / "study")
    folder.write_config(ALIGNED)
    result = folder.snakemake(KEPT.format("web"), KEPT.format("drawn"))
    assert result.returncode == 0, result.stdout + result.stderr
    return folder


def test_planted_copies_are_found_and_dropped(finished):
    said = json.loads(finished.read("dedup/web/report.json"))
    dropped = {(each["dataset"], each["split"]): each["dropped"] for each in said["sets"]}
    assert dropped == {("own", "train"): 0, ("own", "test"): 6, ("web", "train"): 0}
    matches = read_table(finished.path / "results/dedup/web/matches.parquet").to_pylist()
    assert {row["public_id"] for row in matches} == {f"planted-{turn:05d}" for turn in range(6)}
    (calibration,) = said["calibration"]
    assert calibration["dataset"] == "own" and calibration["changes"]["exact"]["found"] == calibration["sample"] == 10
    assert (finished.path / "results/dedup/web/matches.png").exists()


def test_what_a_program_drew_is_not_compared(finished):
    said = json.loads(finished.read("dedup/drawn/report.json"))
    assert said["drawn"] and said["calibration"] == []
    assert not any(each["compared"] or each["dropped"] for each in said["sets"])
    assert len(read_table(finished.path / KEPT.format("drawn"))) == 100
    assert not (finished.path / "results/dedup/images/drawn").exists()


def test_another_threshold_aligns_anew_and_describes_nothing(finished):
    config = copy.deepcopy(ALIGNED)
    config["dedup"]["possible"] = 0.96
    finished.write_config(config)
    planned = {rule for rule, _ in finished.planned(KEPT.format("web"))}
    assert planned == {"align_shard", "calibrate_dedup", "merge_matches"}
    config["datasets"]["own"]["delta"] = "1e-5"
    config["dedup"].pop("possible")
    finished.write_config(config)
    assert not finished.planned(KEPT.format("web"))
    finished.write_config(ALIGNED)
