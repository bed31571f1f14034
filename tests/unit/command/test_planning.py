"""`dpstudy plan`: counts, what is spent, forecasts and a decision, of a table alone."""

import copy
import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml

from dpstudy.command.main import main
from dpstudy.core.errors import StudyError
from dpstudy.data.image_files import opened
from dpstudy.data.prepare import sizes
from tests.workflow.clinic import CONFIG, write_clinic

USEFUL = {"metric": "auc", "at_least": 0.75, "without_privacy": 0.9}


@pytest.fixture
def clinic(tmp_path, monkeypatch):
    """Where a study of the clinic can be planned; gives what writes its config, and plans."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DPSTUDY_DATA", raising=False)
    write_clinic(tmp_path / "data/clinic")

    def plan(*more, **changes):
        config = copy.deepcopy(CONFIG) | {"epsilons": ["1", "8"]} | changes
        (tmp_path / "study.yaml").write_text(yaml.safe_dump(config))
        return main(["plan", "study.yaml", *more])

    return plan


def test_it_counts_persons_images_and_what_all_models_spend(clinic, capsys):
    assert clinic() == 0
    said = capsys.readouterr().out
    assert "units/noise: how far all persons together can move the noisiest release" in said
    known = sizes("clinic", CONFIG["datasets"]["clinic"], Path("data"))
    assert f"learned from: {known.units} persons with {known.records} images, at most 2 of each" in said
    assert known.records <= 2 * known.units and known.shares.sum() == pytest.approx(1)
    assert "4 models spend about epsilon" in said and "the budget is 1000" in said
    assert "write `useful: {metric: auc, at_least: ..., without_privacy: ...}`" in said
    assert not Path("results").exists() and not Path(".snakemake").exists()


def test_images_that_the_table_does_not_list_are_counted(clinic, capsys, tmp_path):
    folder = tmp_path / "data/clinic"
    assert clinic() == 0 and "has no row for" not in capsys.readouterr().out
    shutil.copy(next(folder.rglob("*.png")), folder / "more.png")
    assert clinic() == 0
    assert "datasets.clinic: images in its folder that table.csv has no row for: 1\n" in capsys.readouterr().out


def test_averages_are_planned_with_the_noise_of_one_record(clinic, capsys, tmp_path):
    """Where they count as one, more images of a person raise no signal, but cost none either."""
    shares = {}
    for how, most in (("sum", 3), ("average", 3), ("sum", 1)):
        dataset = CONFIG["datasets"]["clinic"] | {"per_subject": most, "contributions": how}
        dataset = {key: value for key, value in dataset.items() if (key, value) != ("contributions", "sum")}
        assert clinic("--json", "plan.json", datasets={"clinic": dataset}) == 0
        said = capsys.readouterr().out
        assert ("at most 3 of each, averaged" in said) == (how == "average")
        found = json.loads((tmp_path / "plan.json").read_text())["datasets"]["clinic"]
        shares[how, most] = [cell["share"][1] for cell in found["cells"].values() if "share" in cell]
    assert shares["average", 3] == pytest.approx(shares["sum", 1], rel=0.01) and len(shares["sum", 1]) == 2
    assert all(a > b for a, b in zip(shares["average", 3], shares["sum", 3], strict=True))


def test_features_are_timed_on_drawn_images(clinic, capsys):
    more = {
        "pixels": {"extractor": "pixels"},
        "brought": {"extractor": "timm", "model": "resnet18", "weights": "w.safetensors", "trained_on": "unmatched"},
    }
    assert clinic(features=more) == 0
    said = capsys.readouterr().out
    assert "features pixels: about 1 s by as many threads as there are here, 165 MB a job" in said
    assert "features brought: the rehearsal tells how long they take" in said


def test_no_pixel_is_read_but_of_the_first_image(clinic, monkeypatch):
    seen = []
    monkeypatch.setattr("dpstudy.data.images.opened", lambda path, *more: seen.append(path) or opened(path, *more))
    assert clinic() == 0 and len(seen) <= 1


@pytest.mark.parametrize(
    ("useful", "decision", "words"),
    [
        (USEFUL | {"at_least": 0.86}, "not", "it would take"),
        (USEFUL | {"without_privacy": 0.751}, "not", "at an epsilon of 8, would not do it"),
        ({"metric": "auc", "at_least": 0.99}, "not", "not even a perfect model"),
    ],
)
def test_a_few_persons_are_not_worth_it_and_the_plan_says_what_would_do(clinic, capsys, useful, decision, words):
    assert clinic("--json", "plan.json", epsilons=["1"], useful=useful) == 0
    said, found = capsys.readouterr().out, json.loads(Path("plan.json").read_text())
    assert found["private"] is True and found["datasets"]["clinic"]["decision"] == decision
    assert (
        words in said and f"{decision}: no model of this study" in said and Path("plan.json").stat().st_mode & 0o77 == 0
    )


def test_many_persons_are_worth_it(clinic, monkeypatch, capsys):
    from dpstudy.command import planning

    counted = planning.sizes

    def many(*given):
        known = counted(*given)
        return type(known)(50_000, 60_000, 1000, known.shares, known.multi_label, known.classes)

    monkeypatch.setattr(planning, "sizes", many)
    assert clinic(useful=USEFUL) == 0
    said = capsys.readouterr().out
    assert "worth it: least-squares at epsilon 1 is to be expected to have an auc of 0.75 (if" in said


@pytest.mark.parametrize(
    ("useful", "sentence"),
    [
        ({"metric": "top1", "at_least": 80}, "curves of such data have 'auc', and not 'top1'"),
        ({"metric": "ece", "at_least": 1}, "curves of such data have 'auc', and not 'ece'"),
        ({"metric": "auc", "at_least": 0.4}, "0.4 of 'auc': must be above 0.5 (guessing), at most 1"),
        ({"metric": "auc"}, "at_least"),
        (USEFUL | {"at_least": 65}, "useful.at_least: 65 of 'auc': must be from 0 to 1"),
        (USEFUL | {"without_privacy": 1.2}, "useful.without_privacy: 1.2 of 'auc': must be from 0 to 1"),
    ],
)
def test_what_cannot_be_asked_is_one_sentence(clinic, capsys, useful, sentence):
    assert clinic(useful=useful) == 1
    told = capsys.readouterr().err
    assert sentence in told and told.count("\n") == 1


def test_a_method_without_curves_is_said_and_units_pull_against_noise(clinic, capsys):
    assert clinic("--json", "plan.json") == 0
    said = capsys.readouterr().out
    assert said.count("no curves of this method, or of such settings") == 2, "dp-sgd at two epsilons"
    cells = json.loads(Path("plan.json").read_text())["datasets"]["clinic"]["cells"]
    low, high = (cells[f"clinic/pixels/least-squares/eps={epsilon}"] for epsilon in (1, 8))
    assert low["pull"] < high["pull"] and low["share"][1] < high["share"][1] and not math.isnan(low["pull"])


def test_curves_are_of_the_methods_own_settings_and_features_stand_once(clinic, capsys):
    entries = {"ours": {"method": "least_squares"}, "theirs": {"method": "least_squares", "variant": "published"}}
    features = CONFIG["features"] | {"again": {"extractor": "pixels"}}
    assert clinic(methods=entries, features=features, epsilons=["2"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.split()[:1] in (["ours"], ["theirs"])]
    assert len(lines) == 2 and " to " in lines[0] and lines[1].endswith("no curves of this method, or of such settings")


def test_a_goal_beyond_what_is_possible_a_budget_and_few_units_are_told(clinic, capsys):
    assert clinic(useful=USEFUL | {"at_least": 0.8, "without_privacy": 0.7}) == 0
    assert "not: without privacy it would be 0.7, and 0.8 is asked for" in capsys.readouterr().out
    calibrated = {"ours": {"method": "least_squares", "calibration": "auto"}}
    calibrated["theirs"] = {"method": "least_squares", "calibration": 0.01}
    assert clinic(methods=calibrated, epsilons=["1"], release={"budget": "1"}) == 0
    said = capsys.readouterr().out
    assert "of clinic ε = 0 stands in the budget log already, and the budget is 1" in said
    assert "with these models it would be about 1.5" in said and "which a run refuses" in said
    assert clinic(methods=calibrated, epsilons=["1"], release={"budget": "2"}) == 0
    assert "with these models it would be about 1.5" in (fits := capsys.readouterr().out) and "a run allows" in fits
    assert "calibration: auto: too few units, so that scores only rank: ours at epsilon 1" in said
    assert "calibration: 0.01 is too little for so few units, and a run refuses it: theirs at epsilon 1" in said


def test_where_there_is_nothing_to_forecast_it_is_said_and_json_stands(clinic, capsys):
    smoothing = {"ours": {"method": "instance_smoothing"}}
    for changes in ({"methods": smoothing}, {"epsilons": ["inf"]}):
        assert clinic("--json", "plan.json", **changes) == 0
        assert "nothing is forecast: no cell of a finite epsilon has a method" in capsys.readouterr().out
        cells = json.loads(Path("plan.json").read_text())["datasets"]["clinic"]["cells"]
        assert all(cell == {"pull": None} for cell in cells.values())


def test_a_search_has_no_settings_yet_that_curves_could_be_of(clinic, capsys):
    search = {"trials": 2, "space": {"ridge": {"low": 0.1, "high": 1.0}}}
    data = {"clinic": CONFIG["datasets"]["clinic"] | {"splits": {"test": 0.3, "validation": 0.2}}}
    entries = {"ours": {"method": "least_squares", "tuning": search}}
    assert clinic(methods=entries, datasets=data, release={}) == 0
    assert capsys.readouterr().out.count("no curves of this method, or of such settings") == 2


def test_a_file_in_no_folder_is_refused_before_anything(clinic, capsys):
    assert clinic("--json", "nowhere/plan.json") == 1
    assert "nowhere/plan.json: there is no folder nowhere; make it first" in capsys.readouterr().err
    assert not Path("nowhere").exists()


def test_a_study_of_no_own_data_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    digits = {"digits": {"reader": "digits", "splits": {"test": 0.2}, "delta": "1e-4"}}
    config = CONFIG | {"datasets": digits, "noise": "seeded"}
    Path("study.yaml").write_text(yaml.safe_dump({key: value for key, value in config.items() if key != "release"}))
    assert main(["plan", "study.yaml"]) == 1
    assert "no data set of your own in it" in capsys.readouterr().err


def test_sizes_of_a_reader_that_knows_nothing_beforehand_are_refused():
    with pytest.raises(StudyError, match="nothing is known of its records before they are read"):
        sizes("digits", {"reader": "digits", "splits": {"test": 0.2}}, Path("data"))
    assert np.isfinite(USEFUL["at_least"])
