"""A study is laid out whichever hyper-parameter an entry searches: such have no value in a cell's options."""

import importlib
import inspect
import pkgutil

import pytest

from dpstudy import plan
from dpstudy.config.cells import unfold
from dpstudy.core.errors import StudyError
from dpstudy.plan import foreseen, resources
from dpstudy.plan.internals import Job
from dpstudy.schema.methods import hyperparameters, method_schema
from dpstudy.schema.reading import FOLDER
from tests.unit.plan.conftest import Files, Names, study_with

pytestmark = pytest.mark.usefixtures("no_gpu")
METHODS = sorted(path.name.removesuffix(".schema.yaml") for path in (FOLDER / "methods").glob("*.schema.yaml"))
STEPPED = {"learning_rate": 0.5, "clipping_norm": 1.0, "batch_size": 10, "steps": 2}
GIVEN = {  # what an entry of a method must have, and more of what is read while a study is laid out
    "first_order": STEPPED,
    "network_dpsgd": STEPPED | {"network": "wrn-10-1", "augmentation": {"multiplicity": 2}},
    "iterated_sgd": {"learning_rate": 0.5, "clipping_norm": 1.0, "batch_size": 10, "epochs": 1},
    "newton": {"clipping_norm": 1.0, "steps": 2},
    "feature_covariance": {"clipping_norm": 1.0, "steps": 2},
    "instance_smoothing": {"epochs": 1, "projected_dim": 4},
}
LENGTHS = {"steps", "epochs", "noise_multiplier"}  # one of which an entry has
REFUSED = {  # by a sentence about the space, as what is made before a search begins depends on it
    ("least_squares", "clipping_norm"),
    ("least_squares", "variant"),
    ("network_dpsgd", "start"),
}
MODULES = [importlib.import_module(f"dpstudy.plan.{module.name}") for module in pkgutil.iter_modules(plan.__path__)]


def two_values(rules: dict) -> list | None:
    """Two that a schema allows; None where it allows no number, word or boolean."""
    for kind in rules.get("anyOf", [rules]):
        if words := kind.get("enum"):
            return words[:2] if len(words) > 1 else None
        if kind.get("type") == "boolean":
            return [True, False]
        if kind.get("type") == "string":
            return ["a", "b"]
        if kind.get("type") in ("integer", "number"):
            least = kind.get("minimum", 1 if kind["type"] == "integer" else kind.get("exclusiveMinimum", 0) + 0.01)
            return [least, least + 1 if kind["type"] == "integer" else least + 0.01]
    return None


def searched() -> list:
    """(method, hyper-parameter, two of its values) of all that may be searched."""
    names = [(method, name) for method in METHODS for name in hyperparameters(method_schema(method)["properties"])]
    return [
        pytest.param(method, name, values, id=f"{method}-{name}")
        for method, name in names
        if (values := two_values(method_schema(method)["properties"][name]))
    ]


def laid_out(study: dict, manifest: str) -> int:
    """Ask all that is asked of a study's cells before anything runs; how many questions there were."""
    asked, (cell, *_) = 0, unfold(study)
    files = Files(train=[manifest], test=[manifest], validation=[manifest], layouts=[manifest], size_mb=1.0)
    files.size_files_mb = [1.0]
    names = Names(dataset=cell.dataset, features=cell.features, entry=cell.entry, epsilon=cell.epsilon, seed="0")
    for module in MODULES:
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if function.__module__ != module.__name__ or name.startswith("_"):
                continue
            if list(inspect.signature(function).parameters) == ["study", "cell"]:
                function(study, cell)
                asked += 1
    stepped = method_schema(study["methods"][cell.entry]["method"])["x-curve"]
    trained = (resources.stepped, resources.seed) if stepped else (resources.solving,)
    for memory in (*trained, resources.tuning, resources.audit, resources.certification, resources.bundle):
        assert memory(study, names, files) > 0
    assert resources.total(study, names, files) > 0
    foreseen.foresee(study, [Job("train", names, (), {}, (), "train_cell.py", (0,))])
    return asked


@pytest.mark.parametrize("pay", ["nothing", "repeats"])
@pytest.mark.parametrize(("method", "name", "values"), searched())
def test_a_study_is_laid_out_whatever_is_searched(method, name, values, pay, manifest, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = {key: value for key, value in GIVEN.get(method, {}).items() if key != name}
    if name in LENGTHS:
        given = {key: value for key, value in given.items() if key not in LENGTHS}
    tuning = {"pay": pay, "sampler": "random", "trials": 2, "space": {name: {"choices": values}}}
    entry = {"method": method} | given | {"tuning": tuning}
    features = "projected" if method == "kernel_mean" else "pixels"  # the former have public points
    changes = {"methods": {"searched": entry}, "cells": [{"features": [features], "epsilons": ["1"]}]}
    changes |= {"noise": "secure", "release": {"accept": ["tuning"]}, "datasets__own__test_split": "public"}
    if (method, name) in REFUSED:
        with pytest.raises(StudyError, match=rf"methods.searched.tuning.space.{name}: .*give {name} a value instead"):
            study_with(**changes)
        return
    try:
        study = study_with(**changes)
    except StudyError as error:
        if pay == "repeats" and "tuning.pay: " in str(error):
            return
        raise
    assert laid_out(study, manifest()) > 30


def network_entry(**options) -> dict:
    return {"method": "network_dpsgd"} | GIVEN["network_dpsgd"] | options


def test_the_memory_of_a_search_is_that_of_its_largest_setting(manifest):
    space = {"network": {"choices": ["lenet", "wrn-16-4", "wrn-10-1"]}, "micro_batch": {"low": 1, "high": 3}}
    space["micro_batch"] |= {"integer": True, "log": False}
    entries = {"searched": network_entry(tuning={"space": space})}
    entries["largest"] = network_entry(network="wrn-16-4", micro_batch=3)
    study = study_with(methods=entries)
    cells = {cell.entry: cell for cell in unfold(study) if cell.features == "images"}
    asked = {entry: resources.engine(cell.options(study), Files(train=[manifest()])) for entry, cell in cells.items()}
    assert asked["searched"] == asked["largest"] > 0


@pytest.mark.parametrize("start", ["cnn", {"weights": "a.safetensors", "trained_on": "unmatched"}])
def test_a_network_is_not_searched_beside_weights_of_one(start):
    entry = network_entry(start=start, tuning={"space": {"network": {"choices": ["wrn-10-1", "lenet"]}}})
    with pytest.raises(
        StudyError, match=r"methods.net.tuning.space.network: the weights of `start` are of one network"
    ):
        study_with(methods={"net": entry})


SEARCHED = {"tuning": {"space": {"network": {"choices": ["lenet", "wrn-11-1"]}}}}


@pytest.mark.parametrize("options", [{"network": "wrn-11-1"}, SEARCHED])
def test_a_wide_network_of_no_such_depth_is_refused_before_anything_runs(options):
    with pytest.raises(
        StudyError, match=r"methods.net: network 'wrn-11-1': write wrn-D-W, with D = 10, 16, 22, \.\.\."
    ):
        study_with(methods={"net": network_entry(**options)})
