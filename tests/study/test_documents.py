"""Which files tables and figures read: as their styles say, and only what the study makes."""

import pytest

from dpstudy.config.loading import load
from dpstudy.config.narrowing import study_of
from dpstudy.plan.documents import KINDS, audits, claims_table, documents, files, style_modules

PLACE = {"features": "pixels", "entry": "ls"}
LINE = {"dataset": "digits", "features": "pixels", "entry": "sgd", "epsilon": "1"}
SEARCH = {"label": "SGD", "dataset": "digits", "epsilon": "1", "cells": [{"features": "pixels", "entry": "tuned"}]}
SGD = {"method": "first_order", "clipping_norm": 1.0, "steps": 2}
BY_SIZE = {"style": "size", "datasets": ["digits"], "lines": [PLACE | {"epsilon": "1"}]}
CONFIG = {
    "study": "test",
    "datasets": {
        "digits": {"reader": "digits", "delta": "1e-4", "shards": 2, "splits": {"test": 0.2, "validation": 0.1}}
    },
    "public": {"glyphs": {"reader": "glyphs", "count": 100}, "other": {"reader": "glyphs", "count": 50}},
    "features": {"pixels": {"extractor": "pixels"}},
    "methods": {
        "ls": {"method": "least_squares"},
        "sgd": SGD | {"learning_rate": 1.0},
        "tuned": SGD | {"tuning": {"space": {"learning_rate": {"choices": [1, 2]}}}},
    },
    "epsilons": ["1", "inf"],
    "seeds": [0],
    "audit": {"entries": ["ls"]},
    "tables": {
        "main": {"rows": [PLACE]},
        "searches": {"style": "search", "searches": [SEARCH]},
        "splits": {"style": "splits", "counterparts": {"glyphs": {"dataset": "ImageNet"}}},
        "claims": {
            "style": "claims",
            "paper": "tramer2021",
            "roles": {"digits": {"linear": PLACE, "cnn": {"features": "pixels", "entry": "sgd"}}},
        },
    },
    "figures": {
        "curves": {"style": "curve", "panels": [{"lines": [LINE, LINE]}]},
        "near": {"style": "neighbours", "dataset": "digits", "features": "pixels"},
        "sizes": BY_SIZE,
    },
}
LS, SGDS = ([f"digits/pixels/{entry}/eps={epsilon}" for epsilon in ("1", "inf")] for entry in ("ls", "sgd"))


@pytest.fixture(scope="module")
def study():
    return study_of(load(CONFIG))


def names(found):
    """Kind -> names, of the kinds that are there."""
    assert tuple(found) == KINDS
    return {kind: list(paths) for kind, paths in found.items() if paths}


@pytest.mark.parametrize(
    ("kind", "name", "expected"),
    [
        ("tables", "main", {"ledgers": LS, "metrics": LS, "audits": LS[:1]}),
        ("tables", "searches", {"trials": ["digits/pixels/tuned/eps=1"]}),
        ("tables", "splits", {"splits": ["digits", "glyphs"]}),
        ("tables", "claims", {"ledgers": LS + SGDS, "metrics": LS + SGDS, "curves": SGDS, "audits": LS[:1]}),
        ("figures", "curves", {"metrics": SGDS[:1], "curves": SGDS[:1]}),
        ("figures", "near", {"features": ["digits/pixels"]}),
        ("figures", "sizes", {"ledgers": LS[:1]}),
    ],
)
def test_a_table_or_figure_reads_what_its_style_says_and_the_study_makes(study, kind, name, expected):
    assert names(documents(study, kind, [name])) == expected


def test_several_read_what_each_reads_once(study):
    found = documents(study, "tables", ["main", "claims"])
    assert names(found)["ledgers"] == LS + SGDS and len(files(study, found)) == 4 + 4 + 2 + 1


def test_files_are_manifests_of_every_split_and_shards_of_features(study):
    assert files(study, documents(study, "figures", ["near"])) == [
        f"results/features/digits/pixels/train/{name}"
        for name in ("manifest.json", "part-00000.parquet", "part-00001.parquet")
    ]
    manifests = ["digits/train", "digits/validation", "digits/test", "glyphs/train"]
    assert files(study, documents(study, "tables", ["splits"])) == [
        f"results/data/{place}/manifest.json" for place in manifests
    ]
    assert files(study, documents(study, "tables", ["searches"])) == [
        "results/tuning/digits/pixels/tuned/eps=1/trials.parquet"
    ]


def test_claims_are_attacked_always_and_other_entries_at_a_finite_epsilon(study):
    assert list(audits(study)) == LS[:1]
    smoothing = {"method": "instance_smoothing", "projected_dim": 2, "epochs": 1, "attack_runs": 100}
    claimed = study_of(load(CONFIG | {"methods": CONFIG["methods"] | {"claimed": smoothing}}))
    assert list(audits(claimed)) == LS[:1] + [f"digits/pixels/claimed/eps={epsilon}" for epsilon in ("1", "inf")]


def test_the_table_of_a_papers_claims_is_found(study):
    assert claims_table(study, "tramer2021") == "claims" and claims_table(study, "de2022") == ""


def test_styles_are_named_once(study):
    figures = [*study.config["figures"].values(), BY_SIZE]
    found = [module.rpartition(".")[2] for module in style_modules("figures", figures)]
    assert found == ["curve", "neighbours", "size"]
