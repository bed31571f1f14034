"""Studies in one folder share what they name and define alike; what they define otherwise is made anew."""

import copy
import json

from tests.workflow.conftest import TINY

OTHER = copy.deepcopy(TINY) | {
    "study": "other",
    "methods": {"bare": {"method": "least_squares", "gram_share": 0.5}},
    "tables": {"other": {"dataset": "digits"}},
    "figures": {},
}
CELL = "results/cells/digits/pixels/bare/eps=1"


def test_a_second_study_reuses_data_backbones_features_and_statistics(study):
    study.write_config(OTHER, "other.yaml")
    planned = {rule for rule, _ in study.planned("--configfile", "other.yaml")}
    assert planned <= {
        *("train_closed_form", "score_cell", "certify_cells", "summarise_cells", "total_privacy"),
        *("build_table", "build_report"),
    }
    before = json.loads(study.read("cells/digits/pixels/ls/eps=1/metrics.json"))["made_by"]["data"]
    result = study.snakemake(f"{CELL}/metrics.json", "--configfile", "other.yaml")
    assert result.returncode == 0, result.stdout + result.stderr
    assert json.loads((study.path / CELL / "metrics.json").read_text())["made_by"]["data"] == before
    assert study.planned("results/tables/tiny.csv") == [], "the first study's cells are as they were"


def test_a_name_that_means_something_else_is_made_anew(study):
    other = copy.deepcopy(OTHER)
    other["features"]["pixels"]["normalise"] = "l2"
    study.write_config(other, "other.yaml")
    planned = study.planned(f"{CELL}/metrics.json", "--configfile", "other.yaml")
    assert {rule for rule, _ in planned} == {
        *("extract_shard", "extract_manifest", "sum_statistics", "train_closed_form", "score_cell")
    }
