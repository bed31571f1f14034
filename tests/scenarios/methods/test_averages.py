"""Persons whose records are averaged: together they move a sum by no more than one record, and noise is that of one."""

import numpy as np
import pytest

import dpstudy
from dpstudy import methods
from dpstudy.core.errors import StudyError
from dpstudy.methods.averaging import Subjects
from dpstudy.privacy.noise import NoiseSource
from tests.scenarios.methods.test_units import CLASSES, METHODS, MOST, batches, persons, set_up

SECURE = [False, True]


def queries(name, rows, monkeypatch, secure=False, averaged=True, records=MOST):
    """{(release, tensor or number of it): the sum that is noised} of a training; hardly any noise is."""
    method, parameters, problem = set_up(name, records, averaged=averaged, secure=secure)
    asked = {}

    def nearly(self, name, query, std, *more, true=NoiseSource.released, **options):
        place = sum(key[0] == name for key in asked)
        asked[name, place] = np.array(query, np.float64)
        return true(self, name, query, 1e-12 * std, *more, **options)

    with monkeypatch.context() as patch:
        patch.setattr(NoiseSource, "released", nearly)
        data = method.prepare(batches(*rows), parameters, problem)
        plan = method.plan(parameters, problem)
        method.fit(data, parameters, problem, plan, NoiseSource("seeded", "averages"))
    return asked, plan


@pytest.mark.parametrize("name", METHODS)
def test_noise_is_that_of_one_record(name):
    """In the plan, whatever a person has; that it is drawn so, `dpstudy.check_method` sees of each method."""
    one, averaged = (
        method.plan(parameters, problem)
        for method, parameters, problem in (set_up(name, 1), set_up(name, MOST, averaged=True))
    )
    assert averaged.events == one.events and averaged.noise == one.noise


@pytest.mark.parametrize("name", [name for name in METHODS if "batches" not in name and "network" not in name])
@pytest.mark.parametrize("secure", SECURE)
def test_copies_of_a_record_count_as_one(name, secure, monkeypatch):
    features, labels, _ = persons()
    some = 30
    times = np.random.default_rng(1).integers(1, MOST + 1, some)
    order = np.random.default_rng(2).permutation(times.sum())
    who = np.repeat(np.arange(some), times)[order]
    single, _ = queries(name, (features[:some], labels[:some], np.arange(some)), monkeypatch, secure, False, 1)
    copies, _ = queries(name, (features[who], labels[who], who), monkeypatch, secure)
    assert copies.keys() == single.keys()
    for key, value in single.items():
        np.testing.assert_allclose(copies[key], value, atol=2e-3 * np.linalg.norm(value))


@pytest.mark.parametrize("own", [1, 2, MOST])
@pytest.mark.parametrize("secure", SECURE)
@pytest.mark.parametrize("name", ["least_squares", "least_squares, published", "first_order"])
def test_a_person_moves_no_sum_by_more_than_one_record_would(name, own, secure, monkeypatch):
    """Of records that are all alike, long and wrongly guessed, and of the first step: the charge is reached."""
    if name == "first_order":
        monkeypatch.setitem(METHODS, name, {"learning_rate": 1.0, "clipping_norm": 0.3, "steps": 1})
    features, labels, subjects = persons()
    mine = np.flatnonzero(subjects == subjects[np.argmax(np.bincount(subjects)[subjects] == own)])
    assert len(mine) == own
    features[mine], labels[mine] = 100 * features[mine[0]], 1
    left = np.delete(np.arange(len(labels)), mine)
    there, plan = queries(name, (features, labels, subjects), monkeypatch, secure)
    gone, _ = queries(name, (features[left], labels[left], subjects[left]), monkeypatch, secure)
    for event in plan.events:
        moved = np.sqrt(sum(np.sum((there[key] - gone[key]) ** 2) for key in there if key[0] == event.name))
        assert 0.99 * event.sensitivity < moved < (1 + 1e-9 if secure else 1.0001) * event.sensitivity, event.name


def test_sums_are_of_persons_means(monkeypatch):
    """By a loop over persons, in another precision and order."""
    features, labels, subjects = persons()
    asked, _ = queries("least_squares", (features, labels, subjects), monkeypatch)
    clipped = features / np.maximum(1, np.linalg.norm(features.astype(np.float64), axis=1, keepdims=True))
    gram, targets = np.zeros((features.shape[1],) * 2), np.zeros((CLASSES, features.shape[1]))
    for name in set(subjects):
        mine = subjects == name
        gram += np.mean([np.outer(x, x) for x in clipped[mine]], axis=0)
        targets += np.mean([np.outer(np.eye(CLASSES)[y], x) for x, y in zip(clipped[mine], labels[mine])], axis=0)  # noqa: B905
    np.testing.assert_allclose(asked["gram", 0], gram, atol=1e-4)
    np.testing.assert_allclose(asked["targets", 0], targets, atol=1e-4)


def test_arrays_of_persons_are_averaged_without_the_workflow():
    features, labels, subjects = persons()
    common = {"epsilon": 4, "delta": 1e-3, "unit": "subject", "subjects": subjects, "per_subject": MOST}
    common |= {"classes": CLASSES}
    summed, averaged = (
        dpstudy.fit("least_squares", features, labels, contributions=kind, **common) for kind in ("sum", "average")
    )
    charged = [[event["sensitivity"] for event in result.ledger["events"]] for result in (summed, averaged)]
    assert charged == [[MOST, MOST], [1, 1]]
    # with the same noise behind both, their difference would be one of private sums
    other = dpstudy.fit("least_squares", features, labels, seed=1, contributions="average", **common)
    assert not np.allclose(averaged.model.weights, other.model.weights)
    for kind, words in (("mean", "must be 'sum' or 'average'"), (None, "must be 'sum' or 'average'")):
        with pytest.raises(StudyError, match=words):
            dpstudy.fit("least_squares", features, labels, contributions=kind, **common)
    with pytest.raises(StudyError, match="goes with unit='subject'"):
        dpstudy.fit("least_squares", features, labels, contributions="average", epsilon=4, delta=1e-3, classes=CLASSES)
    with pytest.raises(StudyError, match="iterated_sgd does not average"):
        dpstudy.fit("iterated_sgd", features, labels, contributions="average", **common)


def test_noise_of_averages_and_sums_is_not_the_same(monkeypatch):
    """Otherwise whoever has both models, from one seed, takes the noise away."""
    drawn, true = [], NoiseSource.released

    def watched(self, name, query, std, *more, **options):
        found = true(self, name, query, std, *more, **options)
        drawn.append((found - query) / std)
        return found

    monkeypatch.setattr(NoiseSource, "released", watched)
    features, labels, subjects = persons()
    common = {"epsilon": 4, "delta": 1e-3, "unit": "subject", "subjects": subjects, "per_subject": MOST}
    for kind in ("sum", "average"):
        dpstudy.fit("least_squares", features, labels, contributions=kind, classes=CLASSES, **common)
    assert not np.allclose(drawn[0], drawn[2], atol=0.1) and not np.allclose(drawn[1], drawn[3], atol=0.1)


def test_calibration_counts_persons():
    features, labels, _ = persons()
    features, labels = np.tile(features, (40, 1)), np.tile(labels, 40)
    times = np.random.default_rng(3).integers(1, MOST + 1, len(labels))
    who = np.repeat(np.arange(len(labels)), times)
    common = {"epsilon": 1e6, "delta": 1e-6, "classes": CLASSES, "unit": "subject", "calibration": 0.1}
    one = dpstudy.fit("least_squares", features, labels, subjects=np.arange(len(labels)), **common)
    many = dpstudy.fit(
        "least_squares", features[who], labels[who], subjects=who, per_subject=MOST, contributions="average", **common
    )
    charged = [{e["name"]: e["sensitivity"] for e in result.ledger["events"]} for result in (one, many)]
    assert charged[0] == charged[1]
    for first, second in zip(*(dpstudy.predict(r.model, features[:50]) for r in (one, many)), strict=True):
        np.testing.assert_allclose(first, second, atol=0.02)


def test_batches_that_do_not_say_whose_they_are_cannot_be_averaged():
    method, parameters, problem = set_up("least_squares", MOST, averaged=True)
    features, labels, subjects = persons()
    with pytest.raises(StudyError, match="needs to know how many records each person has"):
        method.prepare([(features, labels)], parameters, problem)
    sums = method.prepare(Subjects([(features, labels)], subjects), parameters, problem)
    other = set_up("least_squares", MOST)
    with pytest.raises(ValueError, match="averaged records do not fit"):
        methods.load("least_squares").fit(
            sums, parameters, other[2], method.plan(parameters, other[2]), NoiseSource("seeded", "x")
        )
