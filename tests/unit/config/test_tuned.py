# ruff: noqa: E501  (a sentence a line reads better than one cut in pieces)
"""What a config may say of a search, and what a cell of it is told."""

import copy
import re

import pytest

from dpstudy.config.cells import Cell
from dpstudy.config.loading import load
from dpstudy.core.errors import StudyError

RATE = {"low": 1e-8, "high": 1e8}
BASE = {
    "study": "test",
    "datasets": {
        "digits": {"reader": "digits", "delta": "1e-4", "splits": {"test": 0.2, "validation": 0.1}},
        "bare": {"reader": "digits", "delta": "1e-4", "splits": {"test": 0.2}},
    },
    "features": {"pixels": {"extractor": "pixels"}},
    "methods": {
        "ls": {"method": "least_squares", "tuning": {"space": {"ridge": RATE}}},
        "sgd": {
            "method": "first_order",
            "steps": 10,
            "tuning": {"trials": 30, "space": {"learning_rate": RATE, "clipping_norm": RATE}},
        },
    },
    "epsilons": ["1", "inf"],
    "seeds": [0],
    "cells": [{"datasets": ["digits"]}],
}
SGD, LS = "methods/sgd/tuning/space", "methods/ls/tuning/space"
PAID = {"pay": "repeats", "sampler": "random", "space": {"learning_rate": RATE}}
FIXED = {"method": "first_order", "steps": 10, "learning_rate": 1.0, "clipping_norm": 1.0}


def changed(path, value):
    config = copy.deepcopy(BASE)
    node = config
    *parents, last = path.split("/")
    for key in parents:
        node = node[key]
    node[last] = value
    return config


def override(values, **match):
    return [{"match": match or {"entry": "sgd"}, "set": values}]


MISTAKES = [
    (f"{SGD}/learing_rate", RATE, "methods.sgd.tuning.space.learing_rate: unknown key (did you mean 'learning_rate'?); allowed here: *batch_size*learning_rate*"),
    (f"{SGD}/sanitise", {"choices": ["full"]}, "methods.sgd.tuning.space.sanitise: unknown key; allowed here: *"),
    (f"{SGD}/learning_rate", {"low": 0, "high": 1}, "methods.sgd.tuning.space.learning_rate.low: 0 must be more than 0, or `log: false`"),
    (f"{SGD}/learning_rate", {"low": -1, "high": 1, "log": False}, "methods.sgd (as tuned).learning_rate: -1.0 must be more than 0"),
    (f"{SGD}/momentum", {"low": 0.5, "high": 2}, "methods.sgd (as tuned).momentum: 2.0 must be less than 1"),
    (f"{SGD}/learning_rate", {"low": 2, "high": 2}, "methods.sgd.tuning.space.learning_rate: low 2 must be less than high 2"),
    (f"{SGD}/learning_rate", {"low": 1}, "methods.sgd.tuning.space.learning_rate: give either 'low' and 'high', or 'choices'"),
    (f"{SGD}/learning_rate", {}, "methods.sgd.tuning.space.learning_rate: give either 'low' and 'high', or 'choices'"),
    (f"{SGD}/learning_rate", {"low": 1, "high": 2, "choices": [1]}, "methods.sgd.tuning.space.learning_rate: give either 'low' and 'high', or 'choices'"),
    (f"{SGD}/learning_rate", {"low": "1e-8!", "high": 1}, "methods.sgd.tuning.space.learning_rate.low: '1e-8!' must be a number"),
    (f"{SGD}/learning_rate", {"lo": 1, "high": 2}, "methods.sgd.tuning.space.learning_rate.lo: unknown key (did you mean 'low'?); allowed here: *"),
    (f"{SGD}/learning_rate", [1, 2], "methods.sgd.tuning.space.learning_rate: [1, 2] must be a mapping of keys to values"),
    (f"{SGD}/optimiser", {"choices": ["adam", "adan"]}, "methods.sgd (as tuned).optimiser: 'adan' is not one of 'sgd', 'momentum', 'adam' (did you mean 'adam'?)"),
    (f"{SGD}/bias", {"choices": [-10, "-10"]}, "methods.sgd.tuning.space.bias.choices: [-10, -10] names something twice"),
    (f"{SGD}/curve_points", {"low": 1.5, "high": 9, "integer": True}, "methods.sgd.tuning.space.curve_points: low 1.5 and high 9 must be integers, as `integer: true` has it"),
    (f"{SGD}/curve_points", {"low": 1.5, "high": 9}, "methods.sgd (as tuned).curve_points: 1.5 must be an integer (How often along training the model is scored)"),
    (f"{SGD}/epochs", {"low": 1, "high": 9}, "methods.sgd (as tuned): give exactly one of 'epochs', 'steps', 'noise_multiplier'"),
    ("methods/sgd/tuning/trial", 3, "methods.sgd.tuning.trial: unknown key (did you mean 'trials'?); allowed here: pay, records, retrain, sampler, seed, share, space, trials"),
    ("methods/sgd/tuning/trials", 0, "methods.sgd.tuning.trials: 0 must be at least 1"),
    ("methods/sgd/tuning", {"trials": 3}, "methods.sgd.tuning: the key 'space' is missing*"),
    ("methods/sgd/tuning/sampler", "grid", "methods.sgd.tuning.space.learning_rate: `sampler: grid` needs 'choices', not a range"),
    (SGD, {}, "methods.sgd.tuning.space: must not be empty"),
    (SGD, {"learning_rate": RATE}, "methods.sgd: the key 'clipping_norm' is missing*"),
    ("methods/sgd/steps", -5, "methods.sgd.steps: -5 must be at least 1"),
    (f"{LS}/clipping_norm", RATE, "methods.ls.tuning.space.clipping_norm: 'least_squares' solves from sums that are made once, for one clipping_norm; give clipping_norm a value instead, or an entry for each"),
    (f"{LS}/variant", {"choices": ["improved", "published"]}, "methods.ls.tuning.space.variant: 'least_squares' solves from sums that are made once, for one variant*"),
    ("methods/ls/tuning/records", 100, "methods.ls.tuning.records: 'least_squares' does not read features one by one; leave it out"),
    ("methods/sgd", FIXED | {"batch_size": 64, "tuning": {"records": 9, "space": {"momentum": {"low": 0.1, "high": 0.9}}}}, "methods.sgd.tuning.records: fits full batches without a private normalisation only; leave it out"),
    ("methods/sgd/tuning/pay", "repeats", "methods.sgd.tuning.sampler: 'tpe' looks at trials that nobody pays for; with `pay` give random or grid"),
    ("methods/sgd", FIXED | {"tuning": PAID | {"pay": "choice"}}, "methods.sgd.tuning.pay: 'choice' is for methods that solve every setting from one release; 'first_order' is none: set pay: repeats"),
    ("methods/sgd", FIXED | {"tuning": PAID | {"retrain": True}}, "methods.sgd.tuning.retrain: goes with pay: choice; the best of several runs is released as it is"),
    ("methods/sgd", FIXED | {"tuning": PAID | {"records": 9}}, "methods.sgd.tuning.records: is a heuristic of searches that are not paid for; leave it out"),
    ("methods/sgd", FIXED | {"tuning": PAID | {"pay": "something"}}, "methods.sgd.tuning.pay: 'something' is not one of 'nothing', 'choice', 'repeats'*"),
    ("methods/sgd", FIXED | {"accounting": "tramer2021", "tuning": PAID}, "methods.sgd.tuning.pay: needs accounting: certified, not 'tramer2021'"),
    ("methods/sgd", FIXED | {"shared_noise": True, "tuning": PAID}, "methods.sgd.tuning.pay: there is no proved guarantee to pay from; leave it out"),
    ("cells", [{}], "methods.ls.tuning: datasets.bare.splits.validation is 0, so there is nothing to tune on; give it a fraction, such as 0.1"),
    ("overrides", override({"tuning": {"trails": 3}}), "overrides[0].set.tuning.trails: unknown key (did you mean 'trials'?); allowed here: *"),
    ("overrides", override({"tuning": 5}), "overrides[0].set.tuning: 5 must be a mapping of keys to values*"),
    ("overrides", override({"learning_rate": -1.0}), "methods.sgd (with overrides).learning_rate: -1.0 must be more than 0"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value", "sentence"), MISTAKES)
def test_a_mistake_in_a_search_is_named(path, value, sentence):
    with pytest.raises(StudyError) as caught:
        load(changed(path, value))
    pattern = ".*".join(re.escape(part) for part in sentence.split("*"))
    assert re.fullmatch(pattern, str(caught.value)), f"{str(caught.value)!r} is not {sentence!r}"


def options(config, epsilon="1", entry="sgd"):
    return Cell("digits", "pixels", entry, epsilon).options(config)


def test_what_is_tuned_needs_no_value_and_has_none():
    config = load(BASE)
    assert load(config) == config
    found = options(config)
    assert "learning_rate" not in found and "clipping_norm" not in found
    assert found["tuning"]["trials"] == 30
    assert found["tuning"]["space"]["learning_rate"] == RATE | {"log": True, "integer": False}
    ls = options(config, entry="ls")
    assert ls["tuning"]["trials"] == 200 and ls["tuning"]["seed"] == 0 and "ridge" not in ls


def test_an_override_fixes_what_it_sets_and_leaves_other_cells_to_the_search():
    config = load(BASE | {"overrides": override({"learning_rate": 2.0}, entry="sgd", epsilon="1")})
    fixed = options(config)
    assert fixed["learning_rate"] == 2.0
    assert list(fixed["tuning"]["space"]) == ["clipping_norm"]
    assert sorted(options(config, "inf")["tuning"]["space"]) == ["clipping_norm", "learning_rate"]


def test_an_override_of_all_that_is_tuned_ends_the_search():
    config = load(BASE | {"overrides": override({"learning_rate": 2.0, "clipping_norm": 1.0})})
    assert "tuning" not in options(config)
    assert options(config) == options(load(changed("methods/sgd", FIXED | {"learning_rate": 2.0})))


def test_an_override_may_change_or_begin_a_search():
    config = load(BASE | {"overrides": override({"tuning": {"trials": 5}})})
    assert options(config)["tuning"]["trials"] == 5
    assert sorted(options(config)["tuning"]["space"]) == ["clipping_norm", "learning_rate"]
    begun = changed("methods/sgd", FIXED) | {
        "overrides": override({"tuning": {"space": {"learning_rate": RATE}}}, entry="sgd", epsilon="1")
    }
    begun = load(begun)
    assert options(begun)["tuning"] == {
        "sampler": "tpe", "trials": 200, "seed": 0, "pay": "nothing", "retrain": False, "share": 0.2,
        "space": {"learning_rate": RATE | {"log": True, "integer": False}},
    }  # fmt: skip
    assert "tuning" not in options(begun, "inf")


def test_an_entry_that_chooses_in_each_training_is_not_attacked():
    config = changed("methods/sgd", FIXED | {"tuning": PAID}) | {"audit": {"entries": ["sgd"]}}
    with pytest.raises(StudyError, match="audit.entries: 'sgd' chooses its hyper-parameters in each training"):
        load(config)
