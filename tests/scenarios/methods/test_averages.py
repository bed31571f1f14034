"""Persons whose records are averaged: together they move a sum by no more than one record, and noise is that of one."""

import numpy as np
import pytest

import dpstudy
from dpstudy import methods
from dpstudy.core.errors import StudyError
from dpstudy.methods.averaging import Subjects
from dpstudy.methods.calibrated import Calibrated
from dpstudy.methods.problem import Problem
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.noise import NoiseSource
from tests.scenarios.methods.test_units import AVERAGING, CLASSES, METHODS, MOST, batches, persons, set_up

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


@pytest.mark.parametrize("name", AVERAGING)
def test_noise_is_that_of_one_record(name):
    """In the plan, whatever a person has."""
    one, averaged = (
        method.plan(parameters, problem)
        for method, parameters, problem in (set_up(name, 1), set_up(name, MOST, averaged=True))
    )
    assert averaged.events == one.events and averaged.noise == one.noise


@pytest.mark.parametrize("name", [name for name in AVERAGING if "batches" not in name and "network" not in name])
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


NORMALISED = {"mean_clip": 1.0, "square_clip": 1.0, "noise_multiplier": 5.0}
EXACT = {
    **{name: (METHODS[name], False) for name in AVERAGING if not name.endswith(("batches", "dpsgd"))},
    "least_squares, published, several": ({"variant": "published"}, True),
    "feature_covariance, calibrated": ({"steps": 2}, False),
    "newton, per class": ({"steps": 2, "preconditioner": "per-class"}, False),
    "first_order, bias": ({"learning_rate": 1.0, "clipping_norm": 0.3, "steps": 2, "bias": "learned"}, False),
    "first_order, calibrated, several": (
        {"learning_rate": 1.0, "clipping_norm": 0.3, "steps": 2, "loss": "sigmoid", "normalisation": NORMALISED},
        True,
    ),
    "kernel_mean, several": ({"frequencies": 20}, True),
}


@pytest.mark.parametrize("name", EXACT)
def test_sums_are_exact_so_that_a_person_moves_them_by_what_it_adds_alone(name, monkeypatch):
    """Bit for bit, in any order, at the same releases; and never by more than is charged. Of up to seven records."""
    options, several = EXACT[name]
    most, classes, dim, n = 7, 3, 6, 24
    rng = np.random.default_rng(0)
    who = rng.permutation(np.repeat(np.arange(n), rng.integers(1, most + 1, n)))
    features = (rng.normal(size=(len(who), dim)) * rng.choice([0.1, 1, 10], (len(who), 1))).astype(np.float32)
    labels = rng.integers(classes, size=len(who))
    if several:
        places = np.argsort(rng.random((len(who), classes)), 1)[:, : rng.integers(1, 3)]
        labels = np.zeros((len(who), classes), np.int8)
        np.put_along_axis(labels, places, 1, 1)
    method = methods.load(name.split(",")[0])
    parameters = methods.parameters(name.split(",")[0], options)
    problem = Problem(
        n, (dim,), classes, Budget("2", 1e-3), 2 if several else 1, unit_records=most, averaged=True, secure=True,
        several=several,
    )  # fmt: skip
    true, played = NoiseSource.released, []

    def asked(rows):
        found = []

        def released(self, name, query, std, step=0, tensor="", symmetric=False):
            found.append((name, step, np.array(query)))
            if len(found) > len(played):
                played.append(true(self, name, query, std, step, tensor, symmetric))
            return played[len(found) - 1].copy()

        batch = Subjects([(features[rows], labels[rows])], who[rows])
        stands_for = Calibrated(method, 0.2, lambda: batch, 0.2) if "calibrated" in name else method
        with monkeypatch.context() as patch:
            patch.setattr(NoiseSource, "released", released)
            plan = stands_for.plan(parameters, problem)
            data = stands_for.prepare(batch, parameters, problem)
            stands_for.fit(data, parameters, problem, plan, NoiseSource("seeded", "exact"))
        return found, {event.name: event for event in plan.events}

    whole, events = asked(np.arange(len(who)))
    again, _ = asked(rng.permutation(len(who)))
    assert all(np.array_equal(a[2], b[2]) for a, b in zip(whole, again, strict=True))
    for person in range(0, n, 5):
        (rest, _), (alone, _) = asked(np.flatnonzero(who != person)), asked(np.flatnonzero(who == person))
        moved: dict = {}
        for (release, step, a), (_, _, b), (_, _, c) in zip(whole, rest, alone, strict=True):
            assert a.dtype == np.float64 and np.array_equal(a - b, c), release
            moved[release, step] = moved.get((release, step), 0.0) + np.sum((a - b) ** 2)
        for (release, _), square in moved.items():
            assert np.sqrt(square) <= events[release].sensitivity * (1 + 1e-12), release


@pytest.mark.parametrize("more", [{}, {"record_by_record": True}, {"micro_batch": 5}])
def test_a_person_moves_a_networks_gradient_by_no_more_than_one_record_would(more, monkeypatch):
    rng = np.random.default_rng(0)
    who = rng.permutation(np.repeat(np.arange(12), rng.integers(1, 5, 12)))
    features, labels = rng.normal(size=(len(who), 784)).astype(np.float32), rng.integers(3, size=len(who))
    for person in range(12):  # all alike: the charge is reached
        mine = np.flatnonzero(who == person)
        features[mine], labels[mine] = features[mine[0]], labels[mine[0]]
    options = {"network": "lenet", "learning_rate": 1.0, "clipping_norm": 0.05, "steps": 1, "batch_size": "full"}
    monkeypatch.setitem(METHODS, "network_dpsgd", options | more)
    there, plan = queries("network_dpsgd", (features, labels, who), monkeypatch, records=4)
    (event,) = plan.events
    assert event.sensitivity == 0.05
    for person in range(0, 12, 4):
        left = who != person
        gone, _ = queries("network_dpsgd", (features[left], labels[left], who[left]), monkeypatch, records=4)
        moved = np.sqrt(sum(np.sum((there[key] - gone[key]) ** 2) for key in there))
        assert 0.99 * 0.05 < moved < 1.0001 * 0.05


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


def watched_noise(monkeypatch) -> list:
    """The noise of each release from here on, in standard deviations."""
    drawn, true = [], NoiseSource.released

    def watched(self, name, query, std, *more, **options):
        found = true(self, name, query, std, *more, **options)
        drawn.append((found - query) / std)
        return found

    monkeypatch.setattr(NoiseSource, "released", watched)
    return drawn


def test_noise_of_averages_and_sums_is_not_the_same(monkeypatch):
    """Otherwise whoever has both models, from one seed, takes the noise away."""
    drawn = watched_noise(monkeypatch)
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
