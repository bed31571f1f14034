# ruff: noqa: E501  (a sentence a line reads better than one cut in pieces)
"""Figures of a config: what their styles take, told before anything runs."""

import re

import pytest

from dpstudy.config.loading import load
from dpstudy.core.errors import StudyError
from tests.unit.config.selecting import GONE, GROUPS, PAPER, config, refused

CURVE = {"dataset": "digits", "features": "pixels", "entry": "sgd", "epsilon": "0.5"}
FIGURE = {"datasets": ["digits"], "groups": GROUPS, **PAPER, "published": {"paper": "mehta2023", "method": "DP-LS"}}


def test_a_figure_of_panels_loads():
    assert load(config(figures={"f": FIGURE}))["figures"]["f"]["datasets"] == ["digits"]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"features": ["pixels"]}, "figures.f: give either 'features' or 'groups', which name features with labels"),
        ({"dataset": "digits"}, "figures.f: give exactly one of 'dataset', 'datasets'"),
        ({"published": {"paper": "mehta2024"}}, "figures.f: published: no row of results.csv has paper = 'mehta2024'*"),
        ({"datasets": ["digit"]}, "figures.f.datasets: unknown data set 'digit'*"),
        ({"x": "step"}, "figures.f.x: the style 'epsilons' does not take this key; it takes dataset, datasets*"),
        (
            {"style": "curve"},
            "figures.f.*: the style 'curve' does not take this key; it takes x, panels, share_y, cited",
        ),
        ({"style": "search"}, "figures.f.*: the style 'search' does not take this key; it takes panels, searches*"),
    ],
)
def test_a_figure_that_cannot_be_drawn_is_refused_at_once(change, sentence):
    with pytest.raises(StudyError) as caught:
        load(config(figures={"f": FIGURE | change}))
    pattern = ".*".join(re.escape(part) for part in sentence.split("*"))
    assert re.fullmatch(pattern, str(caught.value)), str(caught.value)


VGG = {"label": "VGG", "published": {"paper": "de2022", "table": "3", "model": "shallow VGG variant"}}
CITING = {"dataset": "digits", "epsilons": ["1", "1.93"], "cited": [VGG]}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"epsilons": ["1", "1.93", "1.94"]}, "figures.f.epsilons: '1.94' is not the study's, and nothing cited*"),
        ({"epsilons": ["1"]}, "figures.f.cited[0]: nothing is printed for it at the epsilons 1"),
        ({"cited": [VGG, VGG]}, "figures.f.cited[1].label: 'VGG' is another row's already"),
        ({"gain_over": "pixels"}, "figures.f.gain_over: published values are no gains; leave one of the two out"),
        (
            {"dataset": GONE, "datasets": ["digits"]},
            "figures.f: the key 'dataset' is missing; numbers that are 'cited'*",
        ),
        ({"style": "size"}, "figures.f.*: the style 'size' does not take this key; it takes datasets, lines"),
    ],
)
def test_numbers_that_cannot_be_cited_are_refused_at_once(change, sentence):
    load(config(figures={"f": CITING}))
    refused(
        config(figures={"f": {key: value for key, value in (CITING | change).items() if value is not GONE}}), sentence
    )


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
        ("epoch", {}, "figures.f.x: 'epoch' is not one of 'epsilon', 'sampling_rate'*"),
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
        (
            {"panels": [{}]},
            "figures.f.panels[0]: the key 'by' is missing (A hyper-parameter that all the searches choose from a list, or *",
        ),
        (
            {"panels": [{"by": "learning_rate", "lines": [CURVE]}]},
            "figures.f.panels[0].lines: unknown key*; allowed here: by, title",
        ),
        (
            {"style": "curve", "panels": [{"by": "learning_rate"}], "searches": GONE},
            "figures.f.panels[0].by: unknown key*; allowed here: lines, title",
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


NEIGHBOURS = {"style": "neighbours", "dataset": "digits", "features": "pixels", "neighbours": 3, "classes": ["0", "1"]}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"features": GONE}, "figures.f: the key 'features' is missing; the style 'neighbours' needs it"),
        (
            {"features": ["pixels"]},
            "figures.f.features: ['pixels'] must be a string (the name of one feature set)",
        ),
        ({"features": "pixel"}, "figures.f.features: unknown feature set 'pixel'*"),
        ({"features": "as-is"}, "figures.f.features: 'as-is' leaves images as they are (extractor 'images');*"),
        ({"neighbours": 0}, "figures.f.neighbours: 0 must be at least 1"),
        ({"epsilons": ["1"]}, "figures.f.epsilons: the style 'neighbours' does not take this key; it takes dataset*"),
        ({"style": "epsilons", "classes": GONE}, "figures.f.neighbours: the style 'epsilons' does not take this key*"),
        (
            {"style": "epsilons", "classes": GONE, "neighbours": GONE},
            "figures.f.features: 'pixels' must be a list",
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
            "figures.f.rows[0].epochs: unknown key*; allowed here: entry, features, label",
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


SERIES = {"label": "LS", "dataset": "digits", "features": "pixels", "epsilon": "0.5", "entries": ["ls"]}
STANDING = {"label": "LS", "dataset": "digits", "epsilon": "0.5"}
STANDING |= {"cells": [{"features": "pixels", "entry": "ls", "x": 50}]}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"series": GONE}, "figures.f: the key 'series' is missing; the style 'settings' needs it"),
        (
            {"panels": [{"x": "steps"}]},
            "figures.f.panels[0]: the key 'y' is missing (The same, or one of evaluation.metrics)",
        ),
        (
            {"panels": [{"x": "steps", "y": "top1", "by": "steps"}]},
            "figures.f.panels[0].by: unknown key (did you mean 'y'?); allowed here: title, x, y",
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
            {"series": [STANDING | {"cells": 2 * STANDING["cells"]}]},
            "figures.f.series[0]: names the cell digits/pixels/ls/eps=0.5 twice",
        ),
        (
            {"series": [STANDING], "panels": [{"x": "depth", "y": "top1"}, {"x": "steps", "y": "top1"}]},
            "figures.f.panels: the cells state one x, so give all panels the same words for it",
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


POINTS = {"style": "curve", "x": "epsilon", "panels": [{"lines": [CURVE]}], "cited": [VGG]}


def with_curve(figure):
    study = config(figures={"f": figure})
    study["methods"]["sgd"] = {"method": "first_order", "learning_rate": 1.0, "clipping_norm": 1.0, "steps": 2}
    return study


def test_printed_numbers_stand_beside_curves_over_epsilon():
    assert load(with_curve(POINTS))["figures"]["f"]["cited"] == [VGG]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"x": "epoch"},
            "figures.f.cited: printed numbers have an epsilon and no epoch: give 'x: epsilon' and one panel",
        ),
        ({"panels": [{"lines": [CURVE]}] * 2}, "figures.f.cited: printed numbers have an epsilon and no epoch*"),
        ({"cited": [VGG, VGG]}, "figures.f.cited[1].label: 'VGG' is another line's already"),
        ({"cited": [VGG | {"label": "sgd"}]}, "figures.f.cited[0].label: 'sgd' is another line's already"),
        ({"cited": [{"label": "a", "published": {"paper": "x"}}]}, "figures.f.cited[0]: published: no row of*"),
    ],
)
def test_points_that_cannot_stand_beside_curves_are_refused(change, sentence):
    refused(with_curve(POINTS | change), sentence)


def test_a_curve_has_the_colour_of_a_line_that_has_one_of_its_own():
    clipped = CURVE | {"label": "no noise", "epsilon": "1", "like": "sgd"}
    figure = {"style": "curve", "panels": [{"lines": [CURVE, clipped]}]}
    assert load(with_curve(figure))["figures"]["f"]["panels"][0]["lines"][1]["like"] == "sgd"
    place = "figures.f.panels[0].lines[1].like: unknown line with a colour of its own"
    for line in (clipped | {"like": "sgdd"}, clipped | {"label": "sgd"}, clipped | {"like": "no noise"}):
        refused(with_curve(figure | {"panels": [{"lines": [CURVE, line]}]}), f"{place} {line['like']!r}*")
