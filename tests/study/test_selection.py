# ruff: noqa: E501  (a sentence a line reads better than one cut in pieces)
"""Tables and figures of a config: what their styles take, and published numbers that can be told before anything runs."""

import re
from pathlib import Path

import pytest
import yaml

from dpstudy.errors import StudyError
from dpstudy.study.config import load

STUDIES = Path(__file__).parents[2] / "studies"
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
        ({"groups": GROUPS}, "tables.t.groups: the style 'plain' does not take this key; it takes rows, cited"),
        (
            {"cited": [{"label": "others", "published": {"paper": "tramer2021"}}]},
            "tables.t: the key 'dataset' is missing; numbers that are 'cited' are of one data set",
        ),
        (
            {"dataset": "digits", "cited": [{"label": "others", "published": {"paper": "tramer"}}]},
            "tables.t: published: no row of results.csv has paper = 'tramer'*",
        ),
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
            "tables.t.searches[0].cells[0]: the cell digits/pixels/ls/eps=0.5 has no search beforehand, whose trials could be shown",
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


SIDE = {
    "style": "side_by_side",
    "dataset": "digits",
    "columns": [{"features": "pixels", "published": {"model": "ResNet18"}}],
    "rows": [
        {"entry": "ls", "epsilon": "1", "published": {"paper": "anon_smoothing", "table": "1", "method": "DP-SGD"}}
    ],
}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"columns": GONE}, "tables.t: the key 'columns' is missing; the style 'side_by_side' needs it"),
        ({"dataset": GONE}, "tables.t: the key 'dataset' is missing; the style 'side_by_side' needs it"),
        (
            {"groups": GROUPS},
            "tables.t.groups: the style 'side_by_side' does not take this key; it takes rows, columns",
        ),
        ({"epsilons": ["1"]}, "tables.t.epsilons: the style 'side_by_side' has one 'dataset', and an 'epsilon' a row"),
        (
            {"rows": [{"entry": "ls"}]},
            "tables.t.rows[0]: the key 'epsilon' is missing; the style 'side_by_side' needs it",
        ),
        (
            {"rows": [{"entry": "ls", "epsilon": "1", "features": "pixels"}]},
            "tables.t.rows[0].features: the style 'side_by_side' takes rows with entry, epsilon, label, published",
        ),
        ({"rows": [{"entry": "ls", "epsilon": "3"}]}, "tables.t.rows[0].epsilon: unknown epsilon '3'*"),
        ({"columns": [{"features": "pixel"}]}, "tables.t.columns[0].features: unknown feature set 'pixel'*"),
        ({"columns": [{"entry": "ls"}]}, "tables.t.columns[0]*entry*"),
        (
            {"columns": [{"features": "pixels", "published": {"model": "ResNet19"}}]},
            "tables.t: published: no row of results.csv has model = 'ResNet19'*",
        ),
        (
            {"style": "plain", "columns": GONE},
            "tables.t.rows[0].epsilon: the style 'plain' takes rows with dataset, features, entry, label*",
        ),
    ],
)
def test_a_table_side_by_side_that_cannot_be_built_is_refused_at_once(change, sentence):
    load(config({"t": SIDE}))
    spec = {key: value for key, value in (SIDE | change).items() if value is not GONE}
    refused(config({"t": spec}), sentence)


def refused(study, sentence):
    with pytest.raises(StudyError) as caught:
        load(study)
    pattern = ".*".join(re.escape(part) for part in sentence.split("*"))
    assert re.fullmatch(pattern, str(caught.value)), str(caught.value)


NEIGHBOURS = {"style": "neighbours", "dataset": "digits", "features": "pixels", "neighbours": 3, "classes": ["0", "1"]}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"features": GONE}, "figures.f: the key 'features' is missing; the style 'neighbours' needs it"),
        (
            {"features": ["pixels"]},
            "figures.f.features: ['pixels'] must be the name of one feature set in the style 'neighbours'",
        ),
        ({"features": "pixel"}, "figures.f.features: unknown feature set 'pixel'*"),
        ({"features": "as-is"}, "figures.f.features: 'as-is' leaves images as they are (extractor 'images');*"),
        ({"neighbours": 0}, "figures.f.neighbours: 0 must be at least 1"),
        ({"epsilons": ["1"]}, "figures.f.epsilons: the style 'neighbours' does not take this key; it takes dataset*"),
        ({"style": "epsilons", "classes": GONE}, "figures.f.neighbours: the style 'epsilons' does not take this key*"),
        (
            {"style": "epsilons", "classes": GONE, "neighbours": GONE},
            "figures.f.features: 'pixels' must be a list in the style 'epsilons'",
        ),
    ],
)
def test_a_figure_of_neighbours_that_cannot_be_drawn_is_refused_at_once(change, sentence):
    study = config() | {"features": {"pixels": {"extractor": "pixels"}, "as-is": {"extractor": "images"}}}
    study["methods"] |= {"net": {"method": "network_dpsgd", "network": "scatter-28", "clipping_norm": 1.0}}
    study["methods"]["net"] |= {"steps": 2, "learning_rate": 1.0}
    study["cells"] = [{"features": ["pixels"], "entries": ["ls"]}, {"features": ["as-is"], "entries": ["net"]}]
    load(study | {"figures": {"f": NEIGHBOURS}})
    spec = {key: value for key, value in (NEIGHBOURS | change).items() if value is not GONE}
    refused(study | {"figures": {"f": spec}}, sentence)


def test_features_without_cells_have_no_neighbours_and_no_model_is_scored_for_them():
    study = config(figures={"f": NEIGHBOURS}) | {"evaluation": {"metrics": ["auc"]}}
    load(study)
    study["features"] |= {"other": {"extractor": "scatternet"}}
    study["cells"] = [{"features": ["other"]}]
    refused(study, "figures.f: the study has no cell of the data set 'digits' on the features 'pixels'")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"column": GONE}, "figures.f: the key 'column' is missing; the style 'disparity' needs it"),
        ({"rows": [{"entry": "ls"}]}, "figures.f.rows[0]: the key 'features' is missing*"),
        (
            {"rows": [{"entry": "ls", "features": "pixels", "epochs": 3}]},
            "figures.f.rows[0].epochs: the style 'disparity' takes rows with features, entry, label",
        ),
        ({"entries": ["ls"]}, "figures.f.entries: the style 'disparity' does not take this key; it takes dataset*"),
        ({"metric": "auc"}, "figures.f.metric: 'auc' is not among evaluation.metrics*"),
    ],
)
def test_a_figure_by_subgroup_that_cannot_be_drawn_is_refused_at_once(change, sentence):
    whole = {"style": "disparity", "dataset": "digits", "column": "label"}
    whole["rows"] = [{"features": "pixels", "entry": "ls"}]
    study = config() | {"evaluation": {"metrics": ["top1"], "per_label": True}}
    load(study | {"figures": {"f": whole}})
    refused(config(figures={"f": whole}), "figures.f.column: 'label' needs evaluation.per_label: true")
    spec = {key: value for key, value in (whole | change).items() if value is not GONE}
    refused(study | {"figures": {"f": spec}}, sentence)


def test_a_table_of_images_has_the_groups_that_it_names():
    study = yaml.safe_load((STUDIES / "medical-nih.yaml").read_text(encoding="utf-8"))
    study["tables"]["sex"]["column"] = "patient_sex"
    refused(study, "tables.sex.column: unknown group column 'patient_sex'*patient_gender, view_position, patient_age*")


SERIES = {"label": "LS", "dataset": "digits", "features": "pixels", "epsilon": "0.5", "entries": ["ls"]}
STANDING = {"label": "LS", "dataset": "digits", "epsilon": "0.5"}
STANDING |= {"cells": [{"features": "pixels", "entry": "ls", "x": 50}]}


def test_a_layout_without_a_cell_is_refused_at_once():
    study = config({"t": SIDE}) | {"cells": [{"epsilons": ["0.5", "inf"]}]}
    refused(study, "tables.t: the study has none of its cells; 'cells' leaves them out")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"series": GONE}, "figures.f: the key 'series' is missing; the style 'settings' needs it"),
        ({"panels": [{"x": "steps"}]}, "figures.f.panels[0]: the key 'y' is missing; the style 'settings' needs it"),
        (
            {"panels": [{"x": "steps", "y": "top1", "by": "steps"}]},
            "figures.f.panels[0].by: the style 'settings' does not take this key; it takes x and y",
        ),
        (
            {"panels": [{"x": "steps", "y": "train_top1"}]},
            "figures.f.panels[0].y: 'train_top1' is not among evaluation.metrics ['top1']",
        ),
        (
            {"series": [{"label": "LS", "dataset": "digits", "features": "pixels", "epsilon": "7", "entries": ["ls"]}]},
            "figures.f.series[0]: the study has no cell digits/pixels/ls/eps=7",
        ),
        (
            {"series": [STANDING | {"epsilon": "7"}]},
            "figures.f.series[0]: the study has no cell digits/pixels/ls/eps=7",
        ),
        (
            {"series": [STANDING | {"entries": ["ls"]}]},
            "figures.f.series[0]: give it 'features' and 'entries', or 'cells' that say their x",
        ),
        (
            {"series": [STANDING, SERIES]},
            "figures.f.series[1]: some series have 'cells' that say their x; give them to all",
        ),
    ],
)
def test_a_figure_of_settings_that_cannot_be_drawn_is_refused_at_once(change, sentence):
    whole = {"style": "settings", "panels": [{"x": "steps", "y": "top1"}], "series": [SERIES]}
    for series in ([SERIES], [STANDING]):
        load(config() | {"figures": {"f": whole | {"series": series}}})
    spec = {key: value for key, value in (whole | change).items() if value is not GONE}
    with pytest.raises(StudyError) as caught:
        load(config() | {"figures": {"f": spec}})
    assert str(caught.value) == sentence
