"""Fits through the real workflow: what they depend on, what reruns, and what the ledger says of them."""

import copy
import json
import shutil

import pytest

from dpstudy.core.files import read_table
from tests.workflow.conftest import StudyFolder, make_folder

FITTED = {
    "study": "fitted",
    "datasets": {"digits": {"reader": "digits", "splits": {"test": 0.2}, "delta": "1e-4"}},
    "public": {
        "glyphs": {"reader": "glyphs", "count": 200},
        "copies": {
            "reader": "glyphs", "count": 150, "seed": 1, "plant": {"dataset": "digits", "split": "train", "count": 9},
        },
    },
    "dedup": {"method": "squares"},
    "backbones": {"cnn": {"architecture": "small_cnn", "public": "copies", "width": 8, "embedding": 16, "epochs": 1}},
    "fits": {
        "pca": {"public": "glyphs", "extractor": "pixels", "dim": 12},
        "cnn-pca": {"public": "glyphs", "extractor": "backbone", "backbone": "cnn", "dim": 5, "whiten": 1},
        "joined-pca": {"public": "glyphs", "features": "beside", "dim": 6},
    },
    "features": {
        "pixels": {"extractor": "pixels"},
        "projected": {"extractor": "pixels", "fit": "pca", "normalise": "l2"},
        "both": {"extractor": "backbone", "backbone": "cnn", "fit": "cnn-pca"},
        "cnn": {"extractor": "backbone", "backbone": "cnn"},
        "beside": {"extractor": "joined", "parts": ["pixels", "cnn"]},
        "joined": {"extractor": "joined", "parts": ["pixels", "cnn"], "fit": "joined-pca"},
    },
    "cells": [{"features": ["pixels", "projected", "both", "joined"]}],
    "methods": {"ls": {"method": "least_squares"}},
    "epsilons": ["1"],
    "seeds": [0],
    "noise": "secure",  # seeded noise is one more sentence in each ledger
    "release": {"spend_again": True},
}  # fmt: skip
AFTER_CELLS = [
    ("build_report", "results/report/index.html"),
    ("certify_cells", "results/privacy/certificates/digits.json"),
    ("summarise_cells", "results/summary.csv"),
    ("total_privacy", "results/privacy/total.json"),
]
FIT = "results/fits/{}/projection.safetensors"


def downstream(features):
    """The jobs from a feature set's extraction to its cell."""
    folder = f"results/features/digits/{features}"
    extracted = [("extract_shard", f"{folder}/{split}/part-00000.parquet") for split in ("train", "test")]
    described = [("extract_manifest", f"{folder}/{split}/manifest.json") for split in ("train", "test")]
    sums = f"results/private/statistics/digits/{features}/train/clip=1.0/shared.safetensors"
    cell = f"results/cells/digits/{features}/ls/eps=1"
    made = [("train_closed_form", f"{cell}/run.json"), ("score_cell", f"{cell}/metrics.json")]
    return [*extracted, *described, ("sum_statistics", sums), *made]


def changed_fit(name, **options):
    config = copy.deepcopy(FITTED)
    config["fits"][name] |= options
    return config


def ledger(study, features):
    return json.loads(study.read(f"cells/digits/{features}/ls/eps=1/ledger.json"))


@pytest.fixture(scope="module")
def finished_fits(tmp_path_factory) -> StudyFolder:
    folder = make_folder(tmp_path_factory.mktemp("fitted") / "study")
    folder.write_config(FITTED)
    result = folder.snakemake()
    assert result.returncode == 0, result.stdout + result.stderr
    return folder


@pytest.fixture
def fitted_study(finished_fits, tmp_path) -> StudyFolder:
    copied = tmp_path / "study"
    shutil.copytree(finished_fits.path, copied, copy_function=shutil.copy2)
    return StudyFolder(copied)


def test_features_have_the_fits_dimensions(finished_fits):
    for features, dim in (("pixels", 64), ("projected", 12), ("both", 5), ("joined", 6)):
        manifest = json.loads(finished_fits.read(f"features/digits/{features}/train/manifest.json"))
        assert manifest["dim"] == dim
        assert (len(manifest["shape"]) == 1) == (features != "pixels")
    card = json.loads(finished_fits.read("fits/cnn-pca/card.json"))
    assert (card["images"], card["features"], card["drop"]) == (200, 16, "private")
    assert json.loads(finished_fits.read("fits/joined-pca/card.json"))["features"] == 64 + 16


def test_a_cell_drops_records_that_match_the_backbones_or_the_fits_public_set(finished_fits):
    made_by = {
        features: json.loads(finished_fits.read(f"cells/digits/{features}/ls/eps=1/metrics.json"))["made_by"]["data"]
        for features in FITTED["cells"][0]["features"]
    }
    kept = {features: sum(name.startswith("kept") for name in data) for features, data in made_by.items()}
    assert kept == {"pixels": 0, "projected": 1, "both": 2, "joined": 2}
    rows = read_table(finished_fits.path / "results/dedup/copies/kept.parquet").to_pylist()
    left = sum((row["dataset"], row["split"]) == ("digits", "train") for row in rows)
    assert left <= ledger(finished_fits, "both")["n"] - FITTED["public"]["copies"]["plant"]["count"]


def test_what_the_ledger_says_of_fits_and_backbones(finished_fits):
    assert ledger(finished_fits, "pixels")["not_accounted"] == []
    assert ledger(finished_fits, "projected")["not_accounted"] == []
    for features in ("both", "joined"):
        (sentence,) = ledger(finished_fits, features)["not_accounted"]
        assert sentence.startswith("Copies of private records were planted in 'copies'")


def test_what_saw_planted_copies_is_not_for_release(finished_fits):
    refused = finished_fits.snakemake("results/release/digits/both/ls/eps=1")
    assert refused.returncode
    assert "not for release: copies of private records were planted in 'copies', which made its" in refused.stderr
    folder = "results/release/digits/projected/ls/eps=1"
    result = finished_fits.snakemake(folder)
    assert result.returncode == 0, result.stdout + result.stderr
    card = json.loads((finished_fits.path / folder / "fit" / "card.json").read_text())
    assert set(card) == {"fit", "options", "features", "versions"}
    metrics = json.loads(finished_fits.read("cells/digits/projected/ls/eps=1/metrics.json"))
    score = f"| top-1 accuracy (%) | {metrics['seeds'][0]['top1']:.4g} |"  # the test split of a published set is public
    assert score in (finished_fits.path / folder / "README.md").read_text()


def test_a_fit_reads_private_records_only_where_public_ones_are_dropped(tmp_path):
    study = make_folder(tmp_path / "study")
    study.write_config(FITTED)
    own = [
        ("fit_projection", FIT.format("pca")),
        ("prepare_manifest", "results/data/glyphs/train/manifest.json"),
        ("prepare_shard", "results/data/glyphs/train/part-00000.parquet"),
    ]
    assert study.planned(FIT.format("pca")) == own
    study.write_config(FITTED | {"dedup": {"drop": "public", "method": "squares"}})
    assert set(study.planned(FIT.format("pca"))) - set(own) == {
        ("match_public", "results/dedup/glyphs/matches.parquet"),
        *(("prepare_shard", f"results/data/digits/{split}/part-00000.parquet") for split in ("train", "test")),
        *(("prepare_manifest", f"results/data/digits/{split}/manifest.json") for split in ("train", "test")),
    }


def test_dropping_public_images_is_named_where_a_fit_is_used(fitted_study):
    fitted_study.write_config(FITTED | {"dedup": {"drop": "public", "method": "squares"}})
    cells = [f"results/cells/digits/{features}/ls/eps=1/ledger.json" for features in ("pixels", "projected")]
    result = fitted_study.snakemake(*cells)
    assert result.returncode == 0, result.stdout + result.stderr
    assert ledger(fitted_study, "pixels")["not_accounted"] == []
    (sentence,) = ledger(fitted_study, "projected")["not_accounted"]
    assert "images of 'glyphs'" in sentence and "drop: public" in sentence
    assert json.loads(fitted_study.read("fits/pca/card.json"))["drop"] == "public"


def test_a_fitted_study_has_nothing_to_do_after_a_run(fitted_study):
    assert fitted_study.planned() == []


@pytest.mark.parametrize(("fit", "features"), [("pca", "projected"), ("cnn-pca", "both"), ("joined-pca", "joined")])
def test_another_dimension_reruns_the_fit_and_what_comes_of_it(fitted_study, fit, features):
    fitted_study.write_config(changed_fit(fit, dim=4))
    expected = [("fit_projection", FIT.format(fit)), *downstream(features), *AFTER_CELLS]
    assert fitted_study.planned() == sorted(expected)


def test_another_normalisation_of_projected_features_reruns_no_fit(fitted_study):
    config = copy.deepcopy(FITTED)
    config["features"]["projected"]["normalise"] = "none"
    fitted_study.write_config(config)
    assert fitted_study.planned() == sorted([*downstream("projected"), *AFTER_CELLS])


def test_another_backbone_reruns_the_fits_on_it_only(fitted_study):
    config = copy.deepcopy(FITTED)
    config["backbones"]["cnn"]["epochs"] = 2
    fitted_study.write_config(config)
    made = [("pretrain_backbone", "results/backbones/cnn/model.safetensors")]
    made += [("fit_projection", FIT.format(fit)) for fit in ("cnn-pca", "joined-pca")]
    assert fitted_study.planned() == sorted([*made, *downstream("both"), *downstream("joined"), *AFTER_CELLS])


def test_editing_the_fit_leaves_features_without_one_alone(fitted_study):
    path = fitted_study.path / "workflow" / "dpstudy" / "features" / "fits.py"
    path.write_text(path.read_text() + "\n# an edit\n")
    fits = [("fit_projection", FIT.format(name)) for name in FITTED["fits"]]
    made = [job for features in ("projected", "both", "joined") for job in downstream(features)]
    assert fitted_study.planned() == sorted([*fits, *made, *AFTER_CELLS])
