"""Records that count for the weights of their classes: what each adds is that part, and noise stays as it was."""

import numpy as np
import pytest

import dpstudy
from dpstudy.core.errors import StudyError
from dpstudy.methods.averaging import by_class, weighted, weights_by_name
from dpstudy.methods.problem import Problem
from dpstudy.methods.sufficient_statistics import Statistics
from dpstudy.privacy.budget import Budget
from tests.scenarios.methods.test_averages import queries, watched_noise
from tests.scenarios.methods.test_units import AVERAGING, CLASSES, persons, set_up

WEIGHTS = (0.5, 1.0, 0.25, 1.0)[:CLASSES]
TIMES = [round(1 / weight) for weight in WEIGHTS]
EVERY = (*WEIGHTS, 1.0)
WHOLE = [name for name in AVERAGING if "batches" not in name and "network" not in name]


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("secure", [False, True])
def test_so_many_copies_of_a_record_count_as_one_that_counts_in_full(name, secure, monkeypatch):
    """A record of weight 1/k, there k times, adds what it adds once without weights: in every sum that is noised."""
    features, labels, _ = persons()
    some = np.arange(15)
    copies = np.random.default_rng(0).permutation(np.repeat(some, np.array(TIMES)[labels[some]]))
    single, plan = queries(name, (features[some], labels[some], some), monkeypatch, secure, False, 1)
    with monkeypatch.context() as patch:
        patch.setattr("tests.scenarios.methods.test_averages.set_up", _weighing)
        rows = features[copies], labels[copies], np.arange(len(copies))
        many, other = queries(name, rows, patch, secure, False, 1)
    assert other.events == plan.events and many.keys() == single.keys()
    for key, value in single.items():
        np.testing.assert_allclose(many[key], value, atol=2e-3 * np.linalg.norm(value))


def _weighing(name, records, **more):
    return set_up(name, records, class_weights=EVERY, **more)


def test_networks_and_samples_of_records_weigh_them_too(monkeypatch):
    """One record of weight 1/2 moves the sum of gradients by half of what it moves it by otherwise."""
    for name in ("first_order, batches", "network_dpsgd"):
        method, parameters, problem = set_up(name, 1, epsilon="inf")
        features, labels, _ = persons(dim=problem.dim)
        rows = [(features[:20], np.zeros(20, int))]
        halved = Problem(**{**vars(problem), "class_weights": (0.5, *EVERY[1:])})
        own, other = (method.prepare(rows, parameters, each).records.weights for each in (problem, halved))
        assert own is None and np.allclose(other, 0.5)


def test_of_several_labels_the_largest_counts_and_none_has_its_own():
    labels = np.array([[1, 0, 0], [1, 1, 0], [0, 0, 0], [0, 0, 1]])
    assert by_class(labels, (0.2, 0.5, 1.0, 0.1)).tolist() == [0.2, 0.5, 0.1, 1.0]
    counted = [(np.zeros((4, 2)), labels)]
    ((_, _, weights),) = weighted(counted, False, (0.2, 0.5, 1.0, 0.1))
    assert weights.tolist() == [0.2, 0.5, 0.1, 1.0]
    assert weights_by_name({"a": 0.2, "none": 0.1}, ["a", "b"], True) == (0.2, 1.0, 0.1)


def test_persons_averages_are_weighed_too():
    from dpstudy.methods.averaging import Subjects

    rows = Subjects([(np.zeros((3, 2)), np.array([0, 0, 1]))], np.array(["p", "p", "q"]))
    ((_, _, weights),) = weighted(rows, True, (0.5, 1.0, 1.0))
    np.testing.assert_allclose(weights, [0.25, 0.25, 1.0])


def test_sums_know_their_weights(tmp_path):
    method, parameters, problem = set_up("least_squares", 1)
    weighing = _weighing("least_squares", 1)[2]
    features, labels, _ = persons()
    sums = method.prepare([(features, labels)], parameters, weighing)
    sums.save(tmp_path / "sums.safetensors")
    assert Statistics.load(tmp_path / "sums.safetensors").class_weights == EVERY
    with pytest.raises(ValueError, match="do not add up"):
        sums + method.prepare([(features, labels)], parameters, problem)
    with pytest.raises(ValueError, match="count for other weights"):
        method.fit(sums, parameters, problem, method.plan(parameters, problem), None)


def test_arrays_are_weighed_without_the_workflow():
    features, labels, _ = persons()
    common = {"epsilon": 4, "delta": 1e-3, "classes": CLASSES}
    plain, weighing = (
        dpstudy.fit("least_squares", features, labels, class_weights=given, **common) for given in (None, {0: 0.5})
    )
    assert plain.ledger["events"] == weighing.ledger["events"]
    for given, words in (
        ({9: 0.5}, "no class '9'"),
        ({0: 0.0}, "above 0"),
        ({0: 2.0}, "at most 1"),
        ({place: 0.5 for place in range(CLASSES)}, "the largest must be 1"),
        ([0.5], "must be numbers by class"),
    ):
        with pytest.raises(StudyError, match=words):
            dpstudy.fit("least_squares", features, labels, class_weights=given, **common)
    with pytest.raises(StudyError, match="iterated_sgd does not weigh records"):
        dpstudy.fit("iterated_sgd", features, labels, class_weights={0: 0.5}, **common)


def test_noise_of_weighed_classes_is_not_that_of_others(monkeypatch):
    """Seeded noise that two models share would be taken away by who has both."""
    drawn = watched_noise(monkeypatch)
    features, labels, _ = persons()
    for given in (None, {0: 0.5}, {0: 0.25}):
        dpstudy.fit("least_squares", features, labels, classes=CLASSES, epsilon=4, delta=1e-3, class_weights=given)
    assert not np.allclose(drawn[0], drawn[2], atol=0.1) and not np.allclose(drawn[2], drawn[4], atol=0.1)


def test_a_problem_with_other_weights_is_refused():
    for wrong in ((0.5, 1.0), (0.5, 1.0, 1.5), (0.0, 1.0, 1.0)):
        with pytest.raises(StudyError, match="class_weights: must be above 0 and at most 1"):
            Problem(10, (2,), 2, Budget("1", 1e-5), class_weights=wrong)
