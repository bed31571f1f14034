"""What scores are worth: against a loop over records, without asking a model again."""

import copy

import numpy as np
import pytest

from dpstudy.cell.monitor import Monitor, metrics_of_curves
from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json, sha256, write_json, write_table
from dpstudy.evaluation.score_file import score_table
from dpstudy.features.shards import FeatureTable
from dpstudy.jobs.scoring import score_cell
from dpstudy.methods.calibrated_publicly import for_calibration
from dpstudy.provenance.hashes import origin_of_scores
from dpstudy.schema.reading import schema

N = 60
CLASSES = ["a", "b", "c"]
ASKED = {"metrics": ["top1"], "intervals": 0, "smallest_group": 5, "small_groups": "merge", "per_label": False}


@pytest.fixture
def test_rows():
    rng = np.random.default_rng(0)
    groups = {"site": np.array(["n", "s"], dtype=object)[rng.integers(2, size=N)]}
    labels = rng.integers(3, size=N).astype(np.int32)
    return FeatureTable(np.array([f"r{i}" for i in range(N)]), np.zeros((N, 1), np.float32), labels, groups=groups)


def a_run(seeds):
    made_by = {"config": "c", "library": "l", "data": {}, "versions": {}}
    facts = {"dataset": "d", "features": "f", "entry": "e", "method": "m", "epsilon": "1", "classes": 3}
    rows = [{"seed": seed, "split": "test", "seconds": 1.0, "releases": {"g": 2}} for seed in seeds]
    more = {"parameters": 6, "hyperparameters": {"steps": 2}, "tuned_on": "nothing"}
    return facts | more | {"seeds": rows, "made_by": made_by}


def by_hand(scores, labels, mask=None):
    right = counted = 0
    for i in range(len(labels)):
        if mask is None or mask[i]:
            counted += 1
            right += max(range(3), key=lambda j: (scores[i, j], -j)) == labels[i]  # noqa: B023
    return 100 * right / counted


@pytest.fixture
def cell(tmp_path, test_rows):
    """(run, files of scores, scores by seed): one file for all seeds, and one a seed."""
    rng = np.random.default_rng(1)
    scores = {seed: rng.integers(4, size=(N, 3)).astype(np.float32) for seed in (3, 1)}  # with ties
    write_json(tmp_path / "run.json", a_run(scores))
    origin = origin_of_scores(a_run([])["made_by"])
    write_table(tmp_path / "both.parquet", score_table(test_rows, scores, CLASSES, origin))
    write_table(tmp_path / "others.parquet", score_table(test_rows, scores, CLASSES, "other code"))
    names = {"dataset": "d", "features": "f", "entry": "e", "seeds": [3, 1]}
    for name, epsilon in (("own", "1"), ("elsewhere", "2")):
        told = score_table(test_rows, scores, CLASSES, origin, names | {"epsilon": epsilon})
        write_table(tmp_path / f"{name}.parquet", told)
    for seed, given in scores.items():
        write_table(tmp_path / f"{seed}.parquet", score_table(test_rows, {seed: given}, CLASSES, origin))
    return str(tmp_path / "run.json"), scores


def test_metrics_are_those_of_a_loop_over_records_from_one_file_or_several(cell, test_rows, tmp_path):
    run, scores = cell
    for files in (["both"], ["own"], ["1", "3"]):
        score_cell(run, [f"{tmp_path}/{name}.parquet" for name in files], ASKED, "lib", str(tmp_path / "metrics.json"))
        metrics = read_json(tmp_path / "metrics.json")
        assert [row["seed"] for row in metrics["seeds"]] == [3, 1], "in the order of the run"
        for row in metrics["seeds"]:
            assert row["top1"] == pytest.approx(by_hand(scores[row["seed"]], test_rows.labels))
            assert row["seconds"] == 1.0 and row["releases"] == {"g": 2}
            for site in "ns":
                mask = test_rows.groups["site"] == site
                group = row["groups"][f"site={site}"]
                assert group["n"] == mask.sum()
                assert group["top1"] == pytest.approx(by_hand(scores[row["seed"]], test_rows.labels, mask))
        both = [row["top1"] for row in metrics["seeds"]]
        assert metrics["files"] == {"run.json": sha256(run)}
        assert metrics["mean"] == {"top1": pytest.approx(sum(both) / 2)}
        assert {key: metrics[key] for key in a_run([]) if key not in ("seeds", "made_by")} == {
            key: value for key, value in a_run([]).items() if key not in ("seeds", "made_by")
        }


def test_records_that_a_model_was_calibrated_on_are_not_scored(cell, test_rows, tmp_path):
    run, scores = cell
    content = read_json(run)
    for row in content["seeds"]:
        row["calibration"] = {"slope": 2.0, "offsets": [0.0] * 3, "shares": [0.3] * 3, "noise": 0.0, "on": "test"}
    write_json(run, content)
    score_cell(run, [tmp_path / "both.parquet"], ASKED, "lib", tmp_path / "metrics.json")
    others = ~for_calibration(test_rows.ids, None)
    for row in read_json(tmp_path / "metrics.json")["seeds"]:
        assert row["tested"]["records"] == others.sum() < N
        assert row["top1"] == pytest.approx(by_hand(scores[row["seed"]], test_rows.labels, others))


def test_what_was_asked_and_who_answered_is_told(cell, tmp_path):
    run, made = cell[0], set()
    for asked, library in ((ASKED, "lib"), (ASKED, "other"), (ASKED | {"metrics": ["top1", "auc"]}, "lib")):
        score_cell(run, [f"{tmp_path}/both.parquet"], asked, library, str(tmp_path / "metrics.json"))
        metrics = read_json(tmp_path / "metrics.json")
        made.add(metrics["made_by"].pop("evaluation"))
        assert metrics["made_by"] == a_run([])["made_by"]
        assert list(metrics["mean"]) == list(asked["metrics"])
    assert len(made) == 3


def test_where_no_label_tells_test_records_apart_a_cell_is_scored_all_the_same(cell, test_rows, tmp_path, caplog):
    """Else a bundle, of a model that was paid for, could be made or not by what one test record bears."""
    scores = score_table(
        FeatureTable(test_rows.ids, test_rows.features, np.zeros(N, np.int32), groups=test_rows.groups),
        cell[1],
        CLASSES,
        origin_of_scores(a_run([])["made_by"]),
    )
    write_table(tmp_path / "one.parquet", scores)
    asked = ASKED | {"metrics": ["auc", "top1", "sensitivity_90"], "intervals": 20, "per_label": True}
    score_cell(cell[0], [tmp_path / "one.parquet"], asked, "lib", tmp_path / "metrics.json")
    metrics = read_json(tmp_path / "metrics.json")
    assert metrics["undefined"] == ["auc", "sensitivity_90"] and list(metrics["mean"]) == ["top1"]
    assert not any(key.startswith(("auc", "sensitivity")) for row in metrics["seeds"] for key in row)
    assert "no value of auc, sensitivity_90, since no label is borne by some test records" in caplog.text
    score_cell(cell[0], [tmp_path / "one.parquet"], asked | {"metrics": ["auc"]}, "lib", tmp_path / "metrics.json")
    assert read_json(tmp_path / "metrics.json")["mean"] == {}


@pytest.mark.parametrize("files", [["1"], ["1", "3", "3"], ["both", "1"], ["others"], ["elsewhere"]])
def test_scores_of_other_models_are_refused(cell, tmp_path, files):
    paths = [f"{tmp_path}/{name}.parquet" for name in files]
    with pytest.raises(
        StudyError, match=rf"{files[0]}\.parquet: its scores are not those of the models of .*run\.json"
    ):
        score_cell(cell[0], paths, ASKED, "lib", str(tmp_path / "metrics.json"))
    assert not (tmp_path / "metrics.json").exists()


def test_metrics_are_the_run_with_scores():
    """The two schemas differ in what scoring adds, and in nothing else."""
    run, metrics = copy.deepcopy(schema("run")), copy.deepcopy(schema("metrics"))
    for name in ("mean", "median", "std"):
        del metrics["properties"][name]
        metrics["required"].remove(name)
    del metrics["properties"]["undefined"]
    del metrics["properties"]["made_by"]["properties"]["evaluation"]
    metrics["properties"]["made_by"]["required"].remove("evaluation")
    of_run, of_metrics = (content["properties"].pop("seeds")["items"] for content in (run, metrics))
    assert {key: run[key] for key in ("properties", "required")} == {
        key: metrics[key] for key in ("properties", "required")
    }
    assert of_run["required"] == of_metrics["required"] and not of_run["additionalProperties"]
    assert of_run["properties"].keys() - of_metrics["properties"].keys() == {"train_top1"}


@pytest.mark.parametrize(
    ("labels", "classes", "metrics"),
    [
        (np.array([0, 1, 2]), 3, ["top1", "top5", "balanced_accuracy"]),
        (np.array([0, 1, 1]), 2, ["top1", "top5", "balanced_accuracy", "auc", "average_precision"]),
        (np.array([1, 1]), 2, ["top1", "top5", "balanced_accuracy"]),  # nobody to rank them against
        (np.array([0, 0]), 2, ["top1", "top5", "balanced_accuracy"]),
        (np.array([[0, 1], [1, 1]]), 2, ["auc", "average_precision"]),
        (np.array([[0, 1], [0, 1]]), 2, []),
    ],
)
def test_a_curve_has_what_its_labels_allow_whatever_is_reported(labels, classes, metrics):
    assert metrics_of_curves(labels, classes) == metrics
    names = [f"c{i}" for i in range(classes)]
    test = FeatureTable(np.array(["r"] * len(labels)), np.zeros((len(labels), 1), np.float32), labels)
    model = type("Model", (), {"scores": lambda self, features: np.eye(classes)[np.arange(len(features)) % classes]})()
    monitor = Monitor(0, test, names)
    monitor(4, model)
    assert [row[3] for row in monitor.rows] == [name for name in metrics if name != "top5"]
