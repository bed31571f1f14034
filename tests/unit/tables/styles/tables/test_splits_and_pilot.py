"""de2022's Tables 8 and 12 beside what a study has: the settings that attacks tried first, and the sizes of splits."""

import csv

import pytest

from dpstudy.core.files import write_json
from dpstudy.tables.build import build_table
from dpstudy.tables.results import Results
from dpstudy.tables.styles.tables import pilot, splits
from dpstudy.tables.styles.tables.splits import lay_splits

AXES = {"datasets": ["cifar10", "mnist"], "features": ["images"], "entries": ["lenet"], "epsilons": ["1", "8"]}


def rows_of(path):
    with path.open() as file:
        return list(csv.DictReader(file))


@pytest.fixture
def sized(tmp_path):
    sizes = {"cifar10": {"train": 45_000, "validation": 5_000, "test": 10_000}, "mnist": {"train": 100, "test": 10_000}}
    paths: dict = {}
    for dataset, counts in sizes.items():
        for split, rows in counts.items():
            path = tmp_path / dataset / f"{split}.json"
            write_json(path, {"rows": rows, "classes": [str(label) for label in range(10)]})
            paths.setdefault(dataset, {})[split] = path
    return Results(AXES, [], {}, {}, splits=paths)


SPLITS = {"style": "splits", "paper": "de2022", "counterparts": {"cifar10": {"dataset": "CIFAR-10"}}}


def test_splits_stand_beside_the_papers(sized, tmp_path):
    build_table("t", SPLITS, sized, tmp_path / "t.tex", tmp_path / "t.csv")
    first, second = rows_of(tmp_path / "t.csv")
    assert [first[key] for key in ("train", "published_train", "validation", "published_validation")] == [
        *("45000", "45000", "5000", "5000")
    ]
    assert (first["classes"], first["test"], first["published_test"]) == ("10", "10000", "10000")
    assert (second["train"], second["validation"], second["published_train"]) == ("100", "", "")
    (sheet,) = splits.STYLE.table("t", SPLITS, sized).sheets
    assert sheet.blocks[0][1] == (
        "mnist",
        "10",
        "100",
        *"–––",
        "10,000",
        "–",
    )
    assert r"45,000 & 45,000 & 5,000 & 5,000 & 10,000 & 10,000" in (tmp_path / "t.tex").read_text()


def test_who_trains_on_all_records_is_compared_with_all_of_the_papers(sized):
    del sized.splits["cifar10"]["validation"]
    line = lay_splits("t", SPLITS | {"dataset": "cifar10"}, sized)[0]
    assert line.printed == {"train": 50_000, "validation": None, "test": 10_000}


def test_public_sets_with_a_counterpart_stand_below(sized, tmp_path):
    path = tmp_path / "public.json"
    write_json(path, {"rows": 1_281_167, "classes": ["a", "b"]})
    sized.splits["imagenet32"] = sized.splits["others"] = {"train": path}
    counterparts = {"cifar10": {"dataset": "CIFAR-10"}, "imagenet32": {"dataset": "ImageNet-32"}}
    found = lay_splits("t", SPLITS | {"counterparts": counterparts}, sized)
    assert [line.dataset for line in found] == ["cifar10", "mnist", "imagenet32"]
    assert found[-1].rows["train"] == 1_281_167 and found[-1].printed["train"] == 1_271_167


def test_a_paper_without_such_a_set_prints_nothing(sized):
    line = lay_splits("t", SPLITS | {"counterparts": {"cifar10": {"dataset": "ImageNet-1k"}}}, sized)[0]
    assert line.printed == {"train": 1_271_167, "validation": 10_000, "test": 50_000}
    assert set(lay_splits("t", {"style": "splits"}, sized)[0].printed.values()) == {None}


@pytest.fixture
def attacked(tmp_path):
    paths, metrics = {}, {}
    for epsilon, away in (("1", 0.2), ("8", 0.4)):
        tried = [
            {"canary": canary, "learning_rate": rate, "clipping_norm": 1.0, "steps": 50, "distance": away + more}
            for canary, more in (("blank", 0.1), ("noise", 0.0))
            for rate in (0.1, 0.5)
        ]
        cell = f"mnist/images/lenet/eps={epsilon}"
        paths[cell], metrics[cell] = tmp_path / f"{epsilon}.json", tmp_path / f"m-{epsilon}.json"
        write_json(paths[cell], {"records": 100, "tried": tried, "chosen": tried[0]})
        write_json(metrics[cell], {"hyperparameters": {"batch_size": 64}})
    return Results(AXES, [], {}, metrics, black_boxes=paths)


PILOT = {"style": "pilot", "paper": "de2022", "dataset": "mnist", "rows": [{"features": "images", "entry": "lenet"}]}


def test_every_setting_that_was_tried_is_in_the_csv(attacked, tmp_path):
    build_table("t", PILOT, attacked, tmp_path / "t.tex", tmp_path / "t.csv")
    rows = rows_of(tmp_path / "t.csv")
    assert len(rows) == 8 and [row["chosen"] for row in rows[:4]] == ["1", "0", "0", "0"]
    assert (rows[5]["epsilon"], rows[5]["learning_rate"], rows[5]["batch_size"]) == ("8", "0.5", "64")
    assert float(rows[4]["distance"]) == pytest.approx(0.5)


def test_the_grids_stand_beside_the_papers(attacked):
    sheet = pilot.STYLE.table("t", PILOT, attacked).sheets[0]
    assert sheet.blocks[0] == (("100", "blank, noise", "0.1, 0.5", "1", "50", "64"),)
    many, few = sheet.blocks[1]
    assert many[0] == "paper, |D|=60K" and many[2:5] == ("0.1, 0.5, 1.0", "0.1, 1.0, 10.0", "500, 1000")
    assert few[0] == "paper, |D|=100" and few[4:] == ("50, 100", "64") and "blank" in few[1]
    assert "|D| = 100: blank 0.40, noise 0.30" in sheet.notes[0]
