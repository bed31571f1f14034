"""Persons with several records: what the ledger says of adding or removing all of somebody's."""

from collections import defaultdict

import numpy as np
import pytest

import dpstudy
from dpstudy import methods
from dpstudy.core.errors import StudyError
from dpstudy.methods.averaging import Subjects
from dpstudy.methods.problem import Problem
from dpstudy.methods.units import Units, units_of
from dpstudy.privacy.accounting import certify
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.noise import NoiseSource
from dpstudy.schema.methods import method_schema

N, DIM, CLASSES, MOST = 40, 12, 3, 3  # subjects
NORMALISED = {"mean_clip": 1.0, "square_clip": 1.0, "noise_multiplier": 30.0}
METHODS = {
    "least_squares": {},
    "least_squares, published": {"variant": "published", "clipping_norm": 0.7},
    "feature_covariance": {"mean_share": 0.1, "start_share": 0.1, "steps": 2},
    "feature_covariance, published": {
        "variant": "published", "steps": 2, "learning_rate": 1.0, "clipping_norm": 0.5, "gram_clipping_norm": 0.6,
    },
    "newton": {"steps": 2},
    "newton, published": {"variant": "published", "steps": 2, "clipping_norm": 0.5},
    "first_order": {"learning_rate": 1.0, "clipping_norm": 0.3, "steps": 2, "normalisation": NORMALISED},
    "first_order, batches": {"learning_rate": 1.0, "clipping_norm": 0.3, "steps": 4, "batch_size": 10},
    "kernel_mean": {"frequencies": 20, "class_shares": "released"},
    "kernel_mean, dp-sgd": {"frequencies": 20, "projection": "dp-sgd"},
    "network_dpsgd": {"network": "lenet", "learning_rate": 1.0, "clipping_norm": 0.3, "steps": 2, "batch_size": 10},
}  # fmt: skip
AVERAGING = [name for name in METHODS if method_schema(name.split(",")[0]).get("x-averages")]


def batches(features, labels, subjects):
    """All rows as one batch, which can say whose they are."""
    return Subjects([(features, labels)], subjects)


def persons(seed=0, dim=DIM):
    """Rows of N subjects with one to three records each, and whose they are, mixed up."""
    rng = np.random.default_rng(seed)
    subjects = np.repeat(np.arange(N), rng.integers(1, MOST + 1, N))
    subjects = rng.permutation(subjects)
    features = rng.standard_normal((len(subjects), dim)).astype(np.float32)
    return features, rng.integers(CLASSES, size=len(subjects)), subjects


def set_up(name, unit_records, epsilon="2", **more):
    method = methods.load(name.split(",")[0])
    parameters = methods.parameters(name.split(",")[0], METHODS[name])
    shape = (1, 28, 28) if "network" in name else (DIM,)
    problem = Problem(N, shape, CLASSES, Budget(epsilon, 1e-3), unit_records=unit_records, **more)
    return method, parameters, problem


@pytest.mark.parametrize("name", METHODS)
def test_what_a_subject_changes_is_as_many_records_and_the_noise_grows_with_it(name, monkeypatch):
    """In the plan, and in what is drawn: nothing escapes the factor."""
    one, several = (set_up(name, count) for count in (1, MOST))
    plans = [method.plan(parameters, problem) for method, parameters, problem in (one, several)]
    for single, many in zip(plans[0].events, plans[1].events, strict=True):
        assert many.sensitivity == pytest.approx(MOST * single.sensitivity, rel=1e-9)
        assert many.noise_multiplier == pytest.approx(single.noise_multiplier, rel=1e-9) and many.name == single.name
    drawn = defaultdict(set)
    true = NoiseSource.gaussian

    def watched(self, name, shape, std, *args, **kwargs):
        drawn[name].add(std)
        return true(self, name, shape, std, *args, **kwargs)

    monkeypatch.setattr(NoiseSource, "gaussian", watched)
    method, parameters, problem = several
    data = method.prepare(batches(*persons(dim=problem.dim)), parameters, problem)
    method.fit(data, parameters, problem, plans[1], NoiseSource("seeded", "units"))
    assert set(drawn) == {event.name for event in plans[1].events}
    for event in plans[1].events:
        assert sorted(drawn[event.name]) == pytest.approx([event.noise_multiplier * event.sensitivity]), event.name


@pytest.mark.parametrize("name", ["least_squares", "least_squares, published"])
def test_removing_a_subject_moves_the_sums_by_no_more(name):
    method, parameters, problem = set_up(name, MOST)
    plan = method.plan(parameters, problem)
    features, labels, subjects = persons()
    mine = np.flatnonzero(subjects == np.bincount(subjects).argmax())
    assert len(mine) == MOST
    features[mine], labels[mine] = 100 * features[mine[0]], 1  # all alike and long: the worst case
    data = [
        method.prepare([(features[rows], labels[rows])], parameters, problem)
        for rows in (np.arange(len(labels)), np.delete(np.arange(len(labels)), mine))
    ]
    for event in plan.events:
        change = np.linalg.norm(getattr(data[0], event.name).astype(np.float64) - getattr(data[1], event.name))
        assert 0.99 * event.sensitivity < change < 1.0001 * event.sensitivity, event.name


@pytest.mark.parametrize("normalisation", [None, NORMALISED])
def test_removing_a_subject_moves_what_is_noised_by_no_more(normalisation, monkeypatch):
    """Of records that are all alike, long and wrongly guessed, and of the first step: the charge is reached."""
    method, _, problem = set_up("first_order", MOST)
    options = {"learning_rate": 1.0, "clipping_norm": 0.3, "steps": 1}
    parameters = methods.parameters(
        "first_order", options | ({"normalisation": normalisation} if normalisation else {})
    )
    plan, moved = method.plan(parameters, problem), []
    features, labels, subjects = persons()
    mine = np.flatnonzero(subjects == np.bincount(subjects).argmax())
    features[mine], labels[mine] = 100 * features[mine[0]], 1

    def nearly(self, name, query, std, *more, true=NoiseSource.released, **options):
        moved[-1][name] = np.array(query, np.float64)
        return true(self, name, query, 1e-12 * std, *more, **options)

    monkeypatch.setattr(NoiseSource, "released", nearly)
    for rows in (np.arange(len(labels)), np.delete(np.arange(len(labels)), mine)):
        moved.append({})
        data = method.prepare([(features[rows], labels[rows])], parameters, problem)
        method.fit(data, parameters, problem, plan, NoiseSource("seeded", "moved"))
    found = {event.name: event.sensitivity for event in plan.events}
    if normalisation:  # after it, gradients of all records differ
        assert found.pop("gradient") == pytest.approx(MOST * 0.3)
    assert len(found) == (2 if normalisation else 1)
    for name, charged in found.items():
        assert 0.99 * charged < np.linalg.norm(moved[0][name] - moved[1][name]) < 1.0001 * charged, name


def test_a_subject_is_drawn_whole_with_the_public_probability():
    features, labels, subjects = persons()
    units = Units(len(labels), subjects)
    assert units.count == len(set(subjects)) == N and units.largest == MOST
    for unit, name in enumerate(np.unique(subjects)):
        assert units.rows(np.array([unit])).tolist() == np.flatnonzero(subjects == name).tolist()
    assert units.rows(None) is None and len(units.rows(np.array([], int))) == 0
    method, parameters, problem = set_up("first_order, batches", MOST)
    data = method.prepare(batches(features, labels, subjects), parameters, problem)
    seen, true = [], type(data.records).blocks

    def watched(self, rows=None, index=None):
        seen.append(index.tolist())
        return true(self, rows, index)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(data.records), "blocks", watched)
        parameters = methods.parameters("first_order", METHODS["first_order, batches"] | {"steps": 400})
        plan = method.plan(parameters, problem)
        method.fit(data, parameters, problem, plan, NoiseSource("seeded", "drawn"))
    taken_part = [rows for rows in seen if rows is not None]
    assert len(taken_part) == 400
    counts = []
    for rows in taken_part:
        taken = set(subjects[rows])
        assert sorted(rows) == np.flatnonzero(np.isin(subjects, list(taken))).tolist()
        counts.append(len(taken))
    # N subjects with probability 1/4 each: mean 10, standard deviation of the mean over 400 steps 0.14
    assert abs(np.mean(counts) - 10) < 0.6
    (event,) = plan.events
    assert (event.sampling, event.sampling_rate) == ("poisson", 10 / N)
    assert certify(plan.events, 1e-3).epsilon <= 2


def test_what_has_no_bound_for_several_records_is_refused():
    for name, options, words in (
        ("first_order", {"sampling": "shuffle", "batch_size": 10}, "first_order: sampling: shuffle has no bound"),
        ("first_order", {"normalisation": NORMALISED | {"sampling_rate": 0.5}}, "normalisation: sampling_rate has no"),
        ("iterated_sgd", {}, "iterated_sgd: iteration has no bound"),
    ):
        method = methods.load(name)
        common = {"learning_rate": 0.1, "clipping_norm": 1.0}
        common |= {"epochs": 2, "batch_size": 10} if name == "iterated_sgd" else {"steps": 2}
        parameters = methods.parameters(name, common | options)
        problem = Problem(N, (DIM,), CLASSES, Budget("2", 1e-3), unit_records=2)
        with pytest.raises(StudyError, match=words):
            method.plan(parameters, problem)
    problem = Problem(N, (DIM,), CLASSES, Budget("2", 1e-3), unit_records=2)
    features, labels, subjects = persons()
    with pytest.raises(StudyError, match="a subject has 3 records, but per_subject is 2"):
        units_of(batches(features, labels, subjects), len(labels), problem, needed=True)
    with pytest.raises(StudyError, match="mini-batches of persons need to know whose"):
        units_of([(features, labels)], len(labels), problem, needed=True)


def test_arrays_of_persons_are_fitted_without_the_workflow():
    features, labels, subjects = persons()
    told = {"unit": "subject", "subjects": subjects, "per_subject": MOST, "classes": CLASSES}
    options = {"learning_rate": 1.0, "clipping_norm": 1.0, "batch_size": 10, "steps": 3}
    result = dpstudy.fit("first_order", features, labels, epsilon=1, delta=1e-3, **told, **options)
    assert (result.ledger["unit"], result.ledger["n"], result.ledger["guarantee"]) == ("subject", N, "proved")
    assert result.ledger["events"][0]["sensitivity"] == MOST and result.ledger["epsilon"] <= 1
    for change, words in (
        ({"per_subject": 2}, "a subject has 3 records, but per_subject is 2"),
        ({"subjects": None}, "give `subjects`"),
        ({"unit": "record"}, "go with unit='subject'"),
        ({"unit": "person"}, "must be 'record' or 'subject'"),
        ({"delta": 0.03}, "not below 1/n = 1/40"),
    ):
        with pytest.raises(StudyError, match=words):
            dpstudy.fit("least_squares", features, labels, **({"epsilon": 1, "delta": 1e-3} | told | change))
