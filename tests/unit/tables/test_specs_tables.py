# ruff: noqa: E501  (a sentence a line reads better than one cut in pieces)
"""Tables of a config: what their styles take, and published numbers that can be told before anything runs."""

import re

import pytest

from dpstudy.config.including import read_config
from dpstudy.config.loading import load
from dpstudy.core.errors import StudyError
from tests.unit.config.selecting import GONE, GROUPS, PAPER, ROWS, STUDIES, config, refused

GROUPED = {"style": "grouped", "groups": GROUPS, "rows": ROWS, **PAPER}


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


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        (
            {"style": "group"},
            "tables.t.style: unknown style of tables 'group' (did you mean 'grouped'?); there is adjacencies, best*",
        ),
        ({"groups": GROUPS}, "tables.t.groups: the style 'plain' does not take this key; it takes rows, cited"),
        (
            {"cited": [{"label": "others", "published": {"paper": "tramer2021"}}]},
            "tables.t: the key 'dataset' is missing; numbers that are 'cited' are of one data set",
        ),
        (
            {"dataset": "digits", "cited": [{"label": "others", "published": {"paper": "tramer"}}]},
            "tables.t.cited[0]: published: no row of results.csv has paper = 'tramer'*",
        ),
        ({"style": "grouped", "rows": ROWS}, "tables.t: the key 'groups' is missing; the style 'grouped' needs it"),
        ({"style": "grouped", "groups": GROUPS}, "tables.t: the key 'rows' is missing; the style 'grouped' needs it"),
        (
            {"rows": ROWS},
            "tables.t.rows[0]: the key 'features' is missing",
        ),
        (
            {"style": "best", "rows": ROWS},
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
        ({"epsilons": ["3"]}, "tables.t.epsilons: unknown epsilon '3'*"),
        ({"datasets": ["digit"]}, "tables.t.datasets: unknown data set 'digit'*"),
        ({"statistic": "mode"}, "tables.t.statistic: 'mode' is not one of*"),
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
            "tables.t.rows[0]: the key 'epsilon' is missing*",
        ),
        (
            {"rows": [{"entry": "ls", "epsilon": "1", "features": "pixels"}]},
            "tables.t.rows[0].features: unknown key; allowed here: entry, epsilon, label, published",
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
            "tables.t.rows[0].epsilon: unknown key*; allowed here: dataset, entry, epochs, features, label, published",
        ),
    ],
)
def test_a_table_side_by_side_that_cannot_be_built_is_refused_at_once(change, sentence):
    load(config({"t": SIDE}))
    spec = {key: value for key, value in (SIDE | change).items() if value is not GONE}
    refused(config({"t": spec}), sentence)


def test_a_table_of_images_has_the_groups_that_it_names():
    study = read_config(STUDIES / "medical-nih.yaml")
    study["tables"]["sex"]["column"] = "patient_sex"
    refused(study, "tables.sex.column: unknown group column 'patient_sex'*patient_gender, view_position, patient_age*")


def test_a_layout_without_a_cell_is_refused_at_once():
    study = config({"t": SIDE}) | {"cells": [{"epsilons": ["0.5", "inf"]}]}
    refused(study, "tables.t: the study has none of its cells; 'cells' leaves them out")


def test_each_column_has_a_table_of_its_own_and_labels_where_they_say_more_than_the_whole():
    own = {
        "reader": "image_table", "location": "own", "table": "a.csv", "path_column": "p", "delta": "1e-4",
        "size": [8, 8], "label_columns": ["Edema", "Mass"], "splits": {"test": 0.3}, "positives": 2,
        "group_columns": ["sex", {"column": "age at exam", "bands": [40]}],
    }  # fmt: skip
    spec = {
        "style": "disparity",
        "column": "each",
        "dataset": "own",
        "caption": "Area by {column}",
        "rows": [{"features": "f", "entry": "ls"}],
    }
    study = {
        "study": "s", "datasets": {"own": own}, "features": {"f": {"extractor": "pixels"}},
        "methods": {"ls": {"method": "least_squares"}}, "epsilons": ["1"], "seeds": [0],
        "evaluation": {"metrics": ["auc"], "per_label": True},
    }  # fmt: skip

    def captions(dataset, kind="tables", spec=spec, **more):
        copied = {name: dict(values) for name, values in study.items() if isinstance(values, dict)}
        loaded = load(
            study
            | copied
            | {
                "datasets": {"own": {k: v for k, v in dataset.items() if v is not None}},
                kind: {"by": dict(spec) | {"metric": "auc"}},
            }
            | more
        )
        return {name: (made["column"], made.get("caption", made.get("title"))) for name, made in loaded[kind].items()}

    told = {"by-sex": ("sex", "Area by sex"), "by-age-at-exam": ("age at exam", "Area by age at exam")}
    assert captions(own) == told | {"by-label": ("label", "Area by finding")}
    assert captions(own, evaluation={"metrics": ["auc"]}) == told
    two = own | {"label_columns": None, "positives": 1, "label_column": "c", "classes": ["a", "b"]}
    assert captions(two) == told and captions(two | {"group_columns": None}) == {}
    assert "by-label" in captions(two | {"classes": ["a", "b", "c"]})
    figure = {key: value for key, value in spec.items() if key != "caption"} | {"title": "{column}"}
    assert captions(own, "figures", figure)["by-label"] == ("label", "finding")
    with pytest.raises(StudyError, match=r"tables\.by\.column: each makes two of the name 'by-age-at-exam'"):
        captions(own | {"group_columns": ["age at exam", "age-at-exam"]})
    with pytest.raises(StudyError, match=r"tables\.by\.column: each needs a `dataset`"):
        captions(own, spec={key: value for key, value in spec.items() if key != "dataset"})
    with pytest.raises(StudyError, match=r"^tables\.by-sex\.column, .*: the style 'plain' does not take this key"):
        captions(own, spec={"column": "each", "dataset": "own"})


def test_claims_of_a_paper_are_judged_by_one_table():
    spec = {"style": "claims", "paper": "tramer2021", "counterparts": {"digits": {"dataset": "MNIST"}}}
    spec |= {"roles": {"digits": {"linear": {"features": "pixels", "entry": "ls"}}}}
    load(config({"one": spec}))
    told = "tables.two: the claims of tramer2021 are judged by tables.one already; name the data sets of both in one"
    with pytest.raises(StudyError, match=f"^{re.escape(told)}$"):
        load(config({"one": spec, "two": spec}))
