# ruff: noqa: E501  (a sentence a line reads better than one cut in pieces)
"""Tables and figures of a config: what their styles take, and published numbers that can be told before anything runs."""

import re

import pytest

from dpstudy.errors import StudyError
from dpstudy.study.config import load

GROUPS = [{"features": "pixels", "label": "Pixels", "published": {"pretraining": "ImageNet-1k"}}]
ROWS = [{"entry": "ls", "label": "DP-LS", "epochs": 1, "published": {"method": "DP-LS", "epochs": "1"}}]
PAPER = {"published": {"paper": "mehta2023"}, "counterparts": {"digits": {"table": "3", "dataset": "CIFAR-10"}}}
GROUPED = {"style": "grouped", "groups": GROUPS, "rows": ROWS, **PAPER}
GONE = object()
CURVE = {"dataset": "digits", "features": "pixels", "entry": "sgd", "epsilon": "0.5"}
FIGURE = {"datasets": ["digits"], "groups": GROUPS, **PAPER, "published": {"paper": "mehta2023", "method": "DP-LS"}}


def config(tables=None, figures=None):
    return {
        "study": "test",
        "datasets": {"digits": {"reader": "digits", "delta": "1e-4", "splits": {"test": 0.2}}},
        "features": {"pixels": {"extractor": "pixels"}},
        "methods": {"ls": {"method": "least_squares"}},
        "epsilons": ["0.5", "1", "inf"],
        "seeds": [0],
        "tables": tables or {},
        "figures": figures or {},
    }


@pytest.mark.parametrize(
    "tables",
    [
        {"t": GROUPED},
        {"t": GROUPED | {"style": "best", "published": {"paper": "mehta2023", "table": "1"}}},
        {"t": {"rows": [{"features": "pixels", "entry": "ls"}]}},
        {"t": {}},
    ],
)
def test_tables_that_load(tables):
    loaded = load(config(tables))["tables"]["t"]
    assert loaded["style"] == tables["t"].get("style", "plain")


def test_a_figure_of_panels_loads():
    assert load(config(figures={"f": FIGURE}))["figures"]["f"]["datasets"] == ["digits"]


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        (
            {"style": "group"},
            "tables.t.style: 'group' is not one of 'plain', 'grouped', 'best'* (did you mean 'grouped'?)",
        ),
        ({"groups": GROUPS}, "tables.t.groups: the style 'plain' does not take this key; it takes rows"),
        ({"style": "grouped", "rows": ROWS}, "tables.t: the key 'groups' is missing; the style 'grouped' needs it"),
        ({"style": "grouped", "groups": GROUPS}, "tables.t: the key 'rows' is missing; the style 'grouped' needs it"),
        (
            {"rows": ROWS},
            "tables.t.rows[0]: the key 'features' is missing; only rows of a table with groups go without it",
        ),
        (
            GROUPED | {"rows": [ROWS[0] | {"features": "pixels"}]},
            "tables.t.rows[0].features: the table's groups name the features; leave it out",
        ),
        (
            GROUPED | {"groups": [{"features": "pixel"}]},
            "tables.t.groups[0].features: unknown feature set 'pixel' (did you mean 'pixels'?); there is pixels",
        ),
        (
            GROUPED | {"groups": [{"features": "pixels", "dataset": "digit"}]},
            "tables.t.groups[0].dataset: unknown data set 'digit'*",
        ),
        (GROUPED | {"rows": [{"entry": "sl"}]}, "tables.t.rows[0].entry: unknown method entry 'sl'*; there is ls"),
        (GROUPED | {"counterparts": {"digit": {"table": "3"}}}, "tables.t.counterparts: unknown data set 'digit'*"),
        (
            GROUPED | {"rows": [ROWS[0] | {"published": {"method": "DP-LSS"}}]},
            "tables.t: published: no row of results.csv has method = 'DP-LSS'*",
        ),
        (
            GROUPED | {"rows": [ROWS[0] | {"published": {"methd": "DP-LS"}}]},
            "tables.t: published: unknown key 'methd'; known are paper*",
        ),
        (
            GROUPED
            | {
                "counterparts": {"digits": {"dataset": "CIFAR-10"}},
                "groups": [GROUPS[0] | {"published": {"model": "ViT-B/16"}}],
            },
            "tables.t: published: lines * of results.csv all match * at epsilon 0.5; tell them apart by pretraining",
        ),
    ],
)
def test_a_table_that_cannot_be_built_is_refused_at_once(spec, sentence):
    with pytest.raises(StudyError) as caught:
        load(config({"t": spec}))
    pattern = ".*".join(re.escape(part) for part in sentence.split("*"))
    assert re.fullmatch(pattern, str(caught.value)), str(caught.value)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"features": ["pixels"]}, "figures.f: give either 'features' or 'groups', which name features with labels"),
        ({"dataset": "digits"}, "figures.f: give exactly one of 'dataset', 'datasets', 'panels', 'noise'"),
        ({"published": {"paper": "mehta2024"}}, "figures.f: published: no row of results.csv has paper = 'mehta2024'*"),
        ({"datasets": ["digit"]}, "figures.f.datasets: unknown data set 'digit'*"),
        ({"x": "step"}, "figures.f.x: the style 'epsilons' does not take this key; it takes dataset, datasets*"),
        ({"style": "curve"}, "figures.f.*: the style 'curve' does not take this key; it takes x, panels, share_y"),
        ({"style": "search"}, "figures.f.*: the style 'search' does not take this key; it takes panels, searches*"),
    ],
)
def test_a_figure_that_cannot_be_drawn_is_refused_at_once(change, sentence):
    with pytest.raises(StudyError) as caught:
        load(config(figures={"f": FIGURE | change}))
    pattern = ".*".join(re.escape(part) for part in sentence.split("*"))
    assert re.fullmatch(pattern, str(caught.value)), str(caught.value)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ({"epsilon": "7"}, "figures.f.panels[0].lines[0]: the study has no cell digits/pixels/sgd/eps=7"),
        ({"entry": "ls"}, "figures.f.panels[0].lines[0]: the entry 'ls' has no steps, hence no curve"),
    ],
)
def test_a_line_that_is_no_curve_is_refused_at_once(line, sentence):
    whole = {"dataset": "digits", "features": "pixels", "entry": "sgd", "epsilon": "0.5"}
    study = config()
    study["methods"]["sgd"] = {"method": "first_order", "learning_rate": 1.0, "clipping_norm": 1.0, "steps": 2}
    load(study | {"figures": {"f": {"style": "curve", "panels": [{"lines": [whole]}]}}})
    with pytest.raises(StudyError) as caught:
        load(study | {"figures": {"f": {"style": "curve", "panels": [{"lines": [whole | line]}]}}})
    assert str(caught.value) == sentence


NOISE = {"delta": "1e-5", "epochs": 2, "records": 100}
LINE = {"algorithm": "dp-sgd", "epsilons": ["1"], "batch_sizes": [10]}


@pytest.mark.parametrize(
    ("x", "line", "sentence"),
    [
        ("epoch", {}, "figures.f.x: 'epoch': the style 'noise' takes epsilon, sampling_rate"),
        ("epsilon", {"batch_sizes": [10, 20]}, "figures.f.noise.series[0].batch_sizes: 2 of them, but x is 'epsilon'*"),
        ("sampling_rate", {"epsilons": ["1", "2"]}, "figures.f.noise.series[0].epsilons: 2 of them*"),
        ("epsilon", {"batch_sizes": [101]}, "figures.f.noise.series[0].batch_sizes: 101 exceeds the 100 records"),
        ("epsilon", {"epsilons": ["inf"]}, "figures.f.noise.series[0].epsilons: 'inf' needs no noise; leave it out"),
        (
            "epsilon",
            {"algorithm": "iteration-secret", "accounting": "tramer2021"},
            "figures.f.noise.series[0].accounting: 'tramer2021' knows no secret order; use 'certified'",
        ),
    ],
)
def test_noise_that_cannot_be_computed_is_refused_at_once(x, line, sentence):
    figure = {"style": "noise", "x": "epsilon", "noise": NOISE | {"series": [LINE]}}
    load(config(figures={"f": figure}))
    with pytest.raises(StudyError) as caught:
        load(config(figures={"f": figure | {"x": x, "noise": NOISE | {"series": [LINE | line]}}}))
    pattern = ".*".join(re.escape(part) for part in sentence.split("*"))
    assert re.fullmatch(pattern, str(caught.value)), str(caught.value)
    with pytest.raises(StudyError, match="the style 'curve' does not take this key"):
        load(config(figures={"f": figure | {"style": "curve"}}))


def test_groups_without_a_counterpart_are_not_looked_up():
    unknown = [{"features": "pixels", "published": {"pretraining": "nobody's"}}]
    load(config({"t": GROUPED | {"groups": unknown, "counterparts": {}}}))
    with pytest.raises(StudyError, match="nobody"):
        load(config({"t": GROUPED | {"groups": unknown}}))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"epsilon": "7"}, "tables.t.searches[0].cells[0]: the study has no cell digits/pixels/sgd/eps=7"),
        (
            {"cells": [{"features": "pixels", "entry": "ls"}]},
            "tables.t.searches[0].cells[0]: the cell digits/pixels/ls/eps=0.5 is not tuned",
        ),
    ],
)
def test_a_search_that_the_study_does_not_make_is_refused_at_once(change, sentence):
    study = config()
    study["datasets"]["digits"]["splits"]["validation"] = 0.1
    tuning = {"space": {"learning_rate": {"choices": [1, 2]}}}
    study["methods"]["sgd"] = {"method": "first_order", "clipping_norm": 1.0, "steps": 2, "tuning": tuning}
    whole = {"label": "SGD", "dataset": "digits", "epsilon": "0.5", "cells": [{"features": "pixels", "entry": "sgd"}]}
    load(study | {"tables": {"t": {"style": "search", "searches": [whole]}}})
    with pytest.raises(StudyError) as caught:
        load(study | {"tables": {"t": {"style": "search", "searches": [whole | change]}}})
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"panels": [{"by": "steps"}]},
            "figures.f.searches[0].cells[0]: the search of digits/pixels/sgd/eps=0.5 does not choose 'steps' from a list",
        ),
        (
            {"panels": [{"by": "clipping_norm"}]},
            "figures.f.searches[0].cells[0]: the search of digits/pixels/sgd/eps=0.5 does not choose 'clipping_norm'*",
        ),
        ({"panels": [{}]}, "figures.f.panels[0]: the key 'by' is missing; the style 'search' needs it"),
        (
            {"panels": [{"by": "learning_rate", "lines": [CURVE]}]},
            "figures.f.panels[0].lines: the style 'search' does not take this key; it takes by",
        ),
        (
            {"style": "curve", "panels": [{"by": "learning_rate"}], "searches": GONE},
            "figures.f.panels[0].by: the style 'curve' does not take this key; it takes lines",
        ),
        ({"searches": GONE}, "figures.f: the key 'searches' is missing; the style 'search' needs it"),
        (
            {"metric": "auc"},
            "figures.f.metric: 'auc' is not what the searches look at, which is the first of evaluation.metrics, 'top1'",
        ),
    ],
)
def test_a_figure_of_searches_that_cannot_be_drawn_is_refused_at_once(change, sentence):
    study = config() | {"evaluation": {"metrics": ["top1", "auc"]}}
    study["datasets"]["digits"]["splits"]["validation"] = 0.1
    tuning = {"space": {"learning_rate": {"choices": [1, 2]}, "clipping_norm": {"low": 0.1, "high": 1.0}}}
    study["methods"]["sgd"] = {"method": "first_order", "steps": 2, "tuning": tuning}
    cells = [{"features": "pixels", "entry": "sgd", "label": "none"}]
    search = {"label": "SGD", "dataset": "digits", "epsilon": "0.5", "cells": cells}
    whole = {"style": "search", "panels": [{"by": "learning_rate"}, {"by": "label"}], "searches": [search]}
    load(study | {"figures": {"f": whole}})
    spec = {key: value for key, value in (whole | change).items() if value is not GONE}
    with pytest.raises(StudyError) as caught:
        load(study | {"figures": {"f": spec}})
    pattern = ".*".join(re.escape(part) for part in sentence.split("*"))
    assert re.fullmatch(pattern, str(caught.value)), str(caught.value)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"lines": GONE}, "figures.f: the key 'lines' is missing; the style 'size' needs it"),
        ({"datasets": ["digit"]}, "figures.f.datasets: unknown data set 'digit'*"),
        ({"datasets": GONE, "dataset": "digits"}, "figures.f.dataset: the style 'size' does not take this key*"),
        ({"x": "step"}, "figures.f.x: the style 'size' does not take this key; it takes datasets, lines"),
        (
            {"lines": [{"features": "pixels", "entry": "ls", "epsilon": "7"}]},
            "figures.f.lines[0]: the study has no cell digits/pixels/ls/eps=7",
        ),
    ],
)
def test_a_figure_by_size_that_cannot_be_drawn_is_refused_at_once(change, sentence):
    line = {"features": "pixels", "entry": "ls", "epsilon": "1"}
    whole = {"style": "size", "datasets": ["digits"], "lines": [line]}
    load(config(figures={"f": whole}))
    spec = {key: value for key, value in (whole | change).items() if value is not GONE}
    with pytest.raises(StudyError) as caught:
        load(config(figures={"f": spec}))
    pattern = ".*".join(re.escape(part) for part in sentence.split("*"))
    assert re.fullmatch(pattern, str(caught.value)), str(caught.value)
