"""A run whose noise is smaller than its ledger says ends there, whichever method and release is at fault."""

import functools
import secrets
from dataclasses import replace

import numpy as np
import pytest

from dpstudy import methods
from dpstudy.methods import schedule
from dpstudy.methods.problem import Problem
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.events import Event
from dpstudy.privacy.ledger import check_noise, check_run
from dpstudy.privacy.noise import NoiseSource
from dpstudy.schema.methods import method_names
from dpstudy.tables.words import RELEASES
from tests.scenarios.methods import test_multi_label, test_units
from tests.unit.auditing import test_canaries
from tests.unit.release import test_bundle

N, CLASSES = 40, 3
RATES = {"learning_rate": 0.01, "clipping_norm": 0.3}
NORMALISED = {"mean_clip": 1.0, "square_clip": 2.0, "noise_multiplier": 9.0}
METHODS = {
    "least_squares": {},
    "least_squares, published": {"variant": "published", "clipping_norm": 0.7},
    "least_squares, not symmetric": {"symmetric": False, "floor": False},
    "feature_covariance": {"mean_share": 0.1, "start_share": 0.1, "steps": 2},
    "feature_covariance, published": {"variant": "published", "steps": 2, "learning_rate": 1.0, "clipping_norm": 0.5},
    "newton": {"steps": 2},
    "newton, shared": {"steps": 2, "preconditioner": "shared"},
    "newton, published": {"variant": "published", "steps": 2, "clipping_norm": 0.5},
    "first_order": RATES | {"steps": 2, "normalisation": NORMALISED},
    "first_order, batches": RATES | {"steps": 3, "batch_size": 10, "normalisation": NORMALISED},
    "first_order, shuffled": RATES | {"epochs": 2, "batch_size": 10, "sampling": "shuffle"},
    "first_order, cut": RATES | {"steps": 3, "batch_size": 10, "largest_batch": 20},
    "iterated_sgd": RATES | {"batch_size": 10, "epochs": 2, "normalisation": NORMALISED},
    "kernel_mean": {"frequencies": 20, "class_shares": "released"},
    "kernel_mean, dp-sgd": {"frequencies": 20, "projection": "dp-sgd"},
    "network_dpsgd": RATES | {"network": "lenet", "steps": 2, "batch_size": 10},
    "network_dpsgd, normalised": RATES
    | {"network": "lenet", "steps": 2, "batch_size": 10, "normalisation": NORMALISED},
    "network_dpsgd, shuffled": RATES | {"network": "lenet", "epochs": 2, "batch_size": 10, "sampling": "shuffle"},
}
# its noise multiplier is a parameter
NOT_FROM_THE_PLAN = {"normalisation_mean", "normalisation_square"}
SCALED_BY_RECORDS = {"instance_smoothing"}  # it claims no global sensitivity that noise could be held against


@pytest.fixture(autouse=True)
def quick_plan(monkeypatch):
    monkeypatch.setattr(schedule, "calibrate", lambda events_at, budget: 50.0)  # of samples it takes seconds


@functools.cache
def set_up(case):
    name = case.split(",")[0]
    shape = (1, 28, 28) if name == "network_dpsgd" else (6,)
    problem = Problem(N, shape, CLASSES, Budget("2", 1e-3), secure=True)
    parameters = methods.parameters(name, METHODS[case])
    method = methods.load(name)
    rng = np.random.default_rng(0)
    rows = [(rng.normal(size=(N, problem.dim)).astype(np.float32), rng.integers(CLASSES, size=N))]
    return method, parameters, problem, method.plan(parameters, problem), method.prepare(rows, parameters, problem)


def run(case, halved=()):
    """Train with noise that is half of what the plan says for some releases, and check the run."""
    method, parameters, problem, plan, data = set_up(case)
    noise = {name: std / 2 if name in halved else std for name, std in plan.noise.items()}
    source = NoiseSource("secure", "cell", secrets.token_hex(8))
    method.fit(data, parameters, problem, replace(plan, noise=noise), source)
    check_run(plan.events, source)


def releases(case):
    of_projection = {"mean", "gram", "gradient"} if case.startswith("kernel_mean") else set()
    return sorted({event.name for event in set_up(case)[3].events} - NOT_FROM_THE_PLAN - of_projection)


@pytest.mark.parametrize("case", METHODS)
def test_people_who_do_not_know_a_releases_name_are_told_what_it_is(case):
    for event in set_up(case)[3].events:
        assert event.name in RELEASES, f"{event.name!r} of {case}: say what it is in workflow/dpstudy/tables/words.py"


# file of tests -> the methods in its lists, and those that have none there, with tests of their own instead
LISTS = {
    "tests/scenarios/methods/test_noise_asked_for.py (METHODS)": (METHODS, SCALED_BY_RECORDS),
    "tests/unit/auditing/test_canaries.py (FULL_BATCH)": (
        [name for name, *_ in test_canaries.FULL_BATCH.values()],
        {"network_dpsgd", "iterated_sgd", "instance_smoothing"},
    ),
    "tests/scenarios/methods/test_units.py (METHODS)": (test_units.METHODS, {"iterated_sgd", "instance_smoothing"}),
    "tests/scenarios/methods/test_multi_label.py (METHODS)": (
        test_multi_label.METHODS,
        {"network_dpsgd", "iterated_sgd"},
    ),
    "tests/unit/release/test_bundle.py (METHODS)": (
        [options["method"] for options in test_bundle.METHODS.values()],
        {"instance_smoothing"},
    ),
}


@pytest.mark.parametrize("place", LISTS)
def test_every_method_is_here(place):
    listed, elsewhere = LISTS[place]
    missing = set(method_names()) - {case.split(",")[0] for case in listed} - elsewhere
    assert not missing, f"add a line to {place} for {', '.join(missing)}: docs/add-a-method.md, step 4, shows it"


@pytest.mark.parametrize("case", METHODS)
def test_half_the_planned_noise_ends_the_run(case):
    run(case)
    for name in releases(case):
        with pytest.raises(RuntimeError, match=f"accounts for noise of standard deviation .* in the release {name!r}"):
            run(case, {name})


@pytest.mark.parametrize("case", ["kernel_mean", "kernel_mean, dp-sgd"])
def test_half_the_noise_of_a_projection_ends_the_run_too(case, monkeypatch):
    module = methods.load("feature_covariance" if case == "kernel_mean" else "first_order")
    fit = module.fit

    def less(data, parameters, problem, plan, source):
        return fit(data, parameters, problem, replace(plan, noise={k: v / 2 for k, v in plan.noise.items()}), source)

    monkeypatch.setattr(module, "fit", less)
    with pytest.raises(RuntimeError, match="accounts for noise of standard deviation"):
        run(case)


NORMALISING = [case for case, options in METHODS.items() if "normalisation" in options]


@pytest.mark.parametrize("case", NORMALISING)
def test_half_the_noise_of_a_normalisation_ends_the_run_too(case, monkeypatch):
    released = NoiseSource.released

    def less(self, name, query, std, *more, **options):
        return released(self, name, query, std / 2 if name == "normalisation_square" else std, *more, **options)

    monkeypatch.setattr(NoiseSource, "released", less)
    with pytest.raises(RuntimeError, match="in the release 'normalisation_square'"):
        run(case)


def drawn(*stds, name="gram", **tensors):
    source = NoiseSource("secure", "cell")
    for step, std in enumerate(stds):
        source.released(name, np.zeros(2), std, step)
    for tensor, std in tensors.items():
        source.released(name, np.zeros(2), std, len(stds), tensor)
    return source


def test_of_several_tensors_the_least_noise_counts():
    event = Event("gram", "gaussian", 2.0, 1.5, 2)
    check_noise([event], drawn(3.0, a=3.0, b=4.0).deviations())
    for source in (drawn(3.0, a=3.0, b=2.9), drawn(2.9, a=3.0), drawn(3.0 * (1 - 1e-6), 9.0)):
        with pytest.raises(RuntimeError, match="standard deviation 3 in the release 'gram'"):
            check_noise([event], source.deviations())
    check_noise([event], drawn(3.0 * (1 - 1e-12), 9.0).deviations())


def test_releases_of_one_name_have_noise_of_their_own():
    """As where all records are released once more after a choice: neither may fall back to the other's noise."""
    events = [Event("gram", "gaussian", 2.0, 1.0), Event("gram", "gaussian", 5.0, 1.0)]
    check_noise(events, drawn(5.0, 2.0).deviations())
    for stds in ((5.0, 1.9), (4.9, 2.0), (2.0, 2.0)):
        with pytest.raises(RuntimeError, match="accounts for noise"):
            check_noise(events, drawn(*stds).deviations())


def test_parts_of_a_run_and_interrupted_ones_are_remembered():
    part, whole = drawn(3.0, 1.0), drawn(2.0)
    whole.adopt(part)
    assert whole.deviations() == {"gram": {1.0: 1, 2.0: 1, 3.0: 1}} and whole.drawn == {"gram": 3}
    resumed = NoiseSource("secure", "cell")
    resumed.resume(whole.made())
    resumed.released("gram", np.zeros(2), 1.0, 3)
    assert resumed.deviations() == {"gram": {1.0: 2, 2.0: 1, 3.0: 1}} and resumed.drawn == {"gram": 4}
    in_units = NoiseSource("secure", "cell")
    in_units.adopt(drawn(3.0, mean=7.0), {"gram": {2.0: 2}})  # the ledger has a sensitivity of 1
    assert in_units.deviations() == {"gram": {2.0: 2}}
