"""`python -m dpstudy.check_method`: every shipped method conforms, and one that leaks does not, however it leaks."""

import re
import subprocess
import sys

import numpy as np
import pytest

from dpstudy import check_method, methods
from dpstudy.auditing import conformance
from dpstudy.auditing.checked_method import CheckedMethod, NonconformityError
from dpstudy.core import entry_points
from dpstudy.methods.problem import Problem
from dpstudy.privacy.budget import Budget
from dpstudy.schema.methods import method_names, method_schema
from tests.unit import leaky_method

pytestmark = pytest.mark.slow

SLOW = {"network_dpsgd", "iterated_sgd", "kernel_mean"}  # with one label alone
GIVEN = {"instance_smoothing": ["projected_dim=4"], "network_dpsgd": ["network=lenet"]}
LEAKS = {  # way -> what finds it
    "thinned": "one label: sensitivity: a record of length .* moves the release 'sums' by .*; its event says 1 at most",
    "labels forgotten": "several labels: sensitivity: a record .* moves the release 'sums' by 1.73",
    "persons forgotten": "persons: sensitivity: a person of length .* moves the release 'sums'",
    "twice the norm": "one label: sensitivity: a record of length .* by 1[.][0-9]+; its event says 1 at most",
    "half the noise": "noise: the ledger accounts for noise of standard deviation .* in the release 'sums'",
    "last batch counts": "batches: the release 'sums' depends on the batches in which records are read",
    "order counts": "batches: the release 'sums' depends on the batches in which records are read, or on their order",
    "off the grid": "batches of exact sums: the release 'sums' .*: under secure noise contributions must lie on a grid",
    "nobody is an error": "nobody: where no record counts its training fails, .*: no record counts",
    "keeps copies": "memory: `prepare` holds .* times a record for each record more",
    "records that are there": "replay, seeded noise: .* fewer and tiny records behind the same n, its model",
    "empty columns": "replay, seeded noise: .* its model is another",
    "long records": "replay, seeded noise: .* long records of one class, its model is another one",
    "rounding": "seeds: seed 1 of those tried gives another model",
    "seldom": "seeds: seed [0-9]+ of those tried gives another model",
    "between seeds": "seeds: seed 1 of those tried gives another model",
    "draws by itself": "noise: a seed gives something else after another one than alone",
    "metadata": "replay, seeded noise: .* with the same releases and other records, its model is another one",
    "a file": "noise: while it ran it wrote into .*leaky.txt: records may leave by it",
}


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(conformance, "_SECONDS", 0.5)
    monkeypatch.setattr(check_method, "MANY", 200)


@pytest.fixture
def leaky(monkeypatch):
    entry_points.name_module("leaky", leaky_method.__name__)
    yield
    entry_points._named.pop()
    method_schema.cache_clear()


@pytest.mark.parametrize("name", method_names())
def test_shipped_methods_conform(name, capsys, monkeypatch):
    if name in SLOW:
        monkeypatch.setattr(check_method, "SETTINGS", {"one label": check_method.SETTINGS["one label"]})
    assert check_method.main([name, *GIVEN.get(name, [])]) == 0
    told = capsys.readouterr().out
    assert "FAIL" not in told and told.endswith(f"{name}: nothing wrong was found, which proves nothing\n")


def test_the_method_conforms_while_it_does_not_leak(leaky, capsys):
    assert check_method.main(["leaky"]) == 0
    assert capsys.readouterr().out.count("ok  ") == 40


@pytest.mark.parametrize("way", LEAKS)
def test_a_leak_is_found(way, leaky, monkeypatch, capsys):
    monkeypatch.setattr(leaky_method, "LEAK", way)
    if way == "thinned":  # in a loop over pairs
        monkeypatch.setattr(check_method, "CHECKS", check_method.CHECKS[:1])
    if way == "seldom":
        monkeypatch.setattr(conformance, "_SECONDS", 20.0)
    monkeypatch.setattr(check_method, "SETTINGS", _settings_for(way))
    assert check_method.main(["leaky"]) == 1
    assert re.search(f"^FAIL  .*{LEAKS[way]}", capsys.readouterr().out, re.MULTILINE)


def _settings_for(way: str) -> dict:
    told = LEAKS[way].partition(":")[0]
    wanted = told if told in check_method.SETTINGS else "one label"
    return {wanted: check_method.SETTINGS[wanted]}


def test_a_module_of_ones_own_is_named_by_its_path():
    command = [sys.executable, "-m", "dpstudy.check_method", "tests.unit.leaky_method:leaky"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "leaky: nothing wrong was found" in done.stdout


@pytest.mark.parametrize(
    "arguments, told",
    [
        (["no_such"], "FAIL  method 'no_such': there is none of that name"),
        (["nowhere.at.all:leaky"], "FAIL  module 'nowhere.at.all' cannot be imported: ModuleNotFoundError"),
        (["least_squares", "alpha"], "FAIL  'alpha': write KEY=VALUE, such as learning_rate=0.5"),
        (
            ["least_squares", "alpa=2"],
            "FAIL  one label: not taken: method 'least_squares': unknown hyper-parameter 'alpa'",
        ),
    ],
)
def test_what_is_wrong_with_a_command_is_said(arguments, told, capsys):
    assert check_method.main(arguments) == 1
    assert told in capsys.readouterr().out


def test_samples_that_go_by_the_records_are_found():
    """Steps are charged as secret samples, and a record's own content says in which it takes part."""

    options = {"learning_rate": 1.0, "clipping_norm": 1.0, "batch_size": 200, "steps": 3}
    parameters = methods.parameters("first_order", options)
    problem = Problem(2000, (20,), 4, Budget("2", 1e-5))
    checked = CheckedMethod("first_order", methods.load("first_order"), parameters, problem)
    assert "as coins of the accounted rates say" in conformance.sampling(checked)

    class ByContent(type(checked)):
        def fitted(self, data, source, plan=None):
            content = next(data.records.blocks(8)).features[0, 0]
            source.sampling = lambda name: np.random.default_rng(int(1e6 * abs(float(content))))
            return super().fitted(data, source, plan)

    by_content = ByContent("first_order", checked.module, parameters, problem)
    with pytest.raises(NonconformityError, match="is not what a coin of its rate gives"):
        conformance.sampling(by_content)
