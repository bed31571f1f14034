"""Shorthand in configs: what a sweep and a glob stand for, and what is said of those that stand for nothing."""

import copy

import pytest

from dpstudy.config.loading import load
from dpstudy.config.sweeps import expand
from dpstudy.core.errors import StudyError

BASE = {
    "datasets": {"mnist": {}, "mnist-small": {}},
    "features": {"pixels": {}},
    "methods": {
        "batch-{batch_size}": {"method": "m", "sweep": {"batch_size": [256, 1024]}},
        "rate-{learning_rate}-K-{K}": {
            "method": "m",
            "sweep": {"learning_rate": [0.5, 2.0], "K": {"0": {}, "4": {"augmentation": {"multiplicity": 4}}}},
        },
        "plain": {"method": "m"},
    },
}


def changed(**changes):
    return copy.deepcopy(BASE) | changes


def test_an_entry_is_swept_over_every_combination_and_named_by_it():
    found = expand(copy.deepcopy(BASE))["methods"]
    assert list(found) == [
        *("batch-256", "batch-1024"),
        *("rate-0p5-K-0", "rate-0p5-K-4", "rate-2p0-K-0", "rate-2p0-K-4"),
        "plain",
    ]
    assert found["batch-1024"] == {"method": "m", "batch_size": 1024}
    assert found["rate-0p5-K-4"] == {"method": "m", "learning_rate": 0.5, "augmentation": {"multiplicity": 4}}
    assert found["rate-2p0-K-0"] == {"method": "m", "learning_rate": 2.0}


def test_features_are_swept_too():
    features = {"net-{side}": {"extractor": "timm", "sweep": {"side": {"64": {"size": [64, 64]}, "128": {}}}}}
    assert expand(changed(features=features))["features"] == {
        "net-64": {"extractor": "timm", "size": [64, 64]},
        "net-128": {"extractor": "timm"},
    }


def test_globs_stand_for_names_in_the_order_of_the_config():
    config = changed(
        cells=[{"datasets": ["mnist*"], "entries": ["plain", "batch-*"]}],
        overrides=[{"match": {"entry": "rate-*-K-4", "dataset": "mnist"}, "set": {}}],
        audit={"entries": ["batch-?*[!6]"]},
        tables={
            "t": {
                "dataset": "mnist",
                "rows": [
                    {"entry": "plain", "label": "{kept}"},
                    {"features": "pix*", "entry": "batch-*", "label": "B = {batch_size:,}"},
                    {"entry": "rate-0p5-*", "label": "η = {learning_rate:g}, K = {K}"},
                ],
                "roles": {"mnist": {"batches": {"features": "pixels", "entry": "batch-*"}}},
            }
        },
        figures={"f": {"panels": [{"lines": [{"dataset": "mnist-*", "entry": "plain"}]}]}},
    )
    found = expand(config)
    assert found["cells"] == [{"datasets": ["mnist", "mnist-small"], "entries": ["plain", "batch-256", "batch-1024"]}]
    assert found["overrides"][0]["match"] == {"entry": ["rate-0p5-K-4", "rate-2p0-K-4"], "dataset": "mnist"}
    assert found["audit"] == {"entries": ["batch-1024"]}
    assert [(row["entry"], row["label"]) for row in found["tables"]["t"]["rows"]] == [
        ("plain", "{kept}"),
        ("batch-256", "B = 256"),
        ("batch-1024", "B = 1,024"),
        ("rate-0p5-K-0", "η = 0.5, K = 0"),
        ("rate-0p5-K-4", "η = 0.5, K = 4"),
    ]
    assert found["tables"]["t"]["rows"][1]["features"] == "pixels"
    assert found["tables"]["t"]["roles"]["mnist"]["batches"] == [
        {"features": "pixels", "entry": "batch-256"},
        {"features": "pixels", "entry": "batch-1024"},
    ]
    assert found["figures"]["f"]["panels"][0]["lines"] == [{"dataset": "mnist-small", "entry": "plain"}]


def test_what_is_written_out_is_what_would_have_been_written():
    common = {"method": "first_order", "clipping_norm": 1.0, "steps": 10}
    study = {
        "study": "s",
        "datasets": {"own": {"reader": "cifar", "location": "cifar", "delta": "1e-5"}},
        "features": {"pixels": {"extractor": "pixels"}},
        "epsilons": ["1"],
        "seeds": [0],
    }
    short = study | {
        "methods": {"rate-{learning_rate}": common | {"sweep": {"learning_rate": [0.5, 1.0]}}},
        "tables": {"t": {"caption": "c", "dataset": "own", "rows": [{"features": "pixels", "entry": "rate-*"}]}},
    }
    long = study | {
        "methods": {"rate-0p5": common | {"learning_rate": 0.5}, "rate-1p0": common | {"learning_rate": 1.0}},
        "tables": {
            "t": {
                "caption": "c",
                "dataset": "own",
                "rows": [{"features": "pixels", "entry": "rate-0p5"}, {"features": "pixels", "entry": "rate-1p0"}],
            }
        },
    }
    assert load(short) == load(long)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"methods": {"a-{x}": {"sweep": {"y": [1]}}}},
            "methods.a-{x}: the name must have a field for each axis .* {y}",
        ),
        ({"methods": {"a": {"sweep": {"y": [1]}}}}, "the name must have a field for each axis"),
        ({"methods": {"a-{y}": {"sweep": [1]}}}, "methods.a-{y}.sweep: must be a mapping of axes"),
        (
            {"methods": {"a-{y}": {"sweep": {"y": []}}}},
            "sweep.y: must be a list of values of the key 'y', or a mapping",
        ),
        ({"methods": {"a-{y}": {"sweep": {"y": [1, 1]}}}}, "gives the name 'a-1' twice"),
        ({"methods": {"a-1": {}, "a-{y}": {"sweep": {"y": [1]}}}}, "gives the name 'a-1' twice"),
        ({"methods": {"a-{y}": {"sweep": {"y": list(range(1001))}}}}, "stands for more than 1000 entries"),
        ({"cells": [{"entries": ["batsch-*"]}]}, r"cells\[0\].entries: no method entry fits 'batsch-\*'"),
        ({"tables": {"t": {"rows": [{"features": "x*"}]}}}, r"tables.t.rows\[0\].features: no feature set fits 'x\*'"),
        ({"tables": {"t": {"rows": [{"entry": "batch-*", "label": "{size}"}]}}}, "{size} is no axis .* {batch_size}"),
        ({"tables": {"t": {"rows": [{"entry": "batch-*", "label": "{batch_size:q}"}]}}}, "formats are Python's"),
    ],
)
def test_a_mistake_is_told_in_a_sentence(changes, sentence):
    with pytest.raises(StudyError, match=sentence):
        expand(changed(**changes))


@pytest.mark.parametrize("odd", [None, 3, [], {"methods": 3}, {"methods": {"a": 3}, "cells": 4, "tables": [1, None]}])
def test_what_is_no_config_is_left_to_the_checks(odd):
    assert expand(odd) == odd


def test_what_published_numbers_have_in_common_is_said_once():
    rows = [
        {"entry": "plain", "published": {"model": "linear", "table": "2"}},
        {"entry": "plain", "published": {"model": "CNN"}},
        {"entry": "plain"},
    ]
    table = {"dataset": "mnist", "published": {"paper": "p", "table": "1"}, "rows": rows}
    found = expand(changed(tables={"t": table, "g": table | {"style": "grouped"}, "odd": 3}))["tables"]
    assert "published" not in found["t"] and [row.get("published") for row in found["t"]["rows"]] == [
        {"paper": "p", "table": "2", "model": "linear"},
        {"paper": "p", "table": "1", "model": "CNN"},
        None,
    ]
    assert found["g"] == table | {"style": "grouped"} and found["odd"] == 3
