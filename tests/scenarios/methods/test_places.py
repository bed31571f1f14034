"""A record that de-duplication leaves out moves no other: the rest take part in the steps in which they would have."""

import numpy as np
import pytest

from dpstudy import methods
from dpstudy.methods.problem import Problem
from dpstudy.methods.units import Units
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.noise import NoiseSource

N, DIM, CLASSES, SIZE = 60, 5, 3, 10
METHODS = {
    "iterated_sgd": {"clipping_norm": 0.5, "epochs": 1, "batch_size": SIZE},
    "first_order": {"clipping_norm": 0.5, "epochs": 1, "batch_size": SIZE, "sampling": "shuffle"},
    "network_dpsgd": {
        "network": "lenet", "clipping_norm": 0.5, "epochs": 1, "batch_size": SIZE, "sampling": "shuffle",
    },
}  # fmt: skip


class Kept(list):
    """One batch of the rows that are left, which can say where they stood."""

    def __init__(self, features, labels, places):
        super().__init__([(features, labels)])
        self._places = places

    def places(self):
        return self._places


def rows(name):
    rng = np.random.default_rng(2)
    shape = (1, 28, 28) if name == "network_dpsgd" else (DIM,)
    features = rng.standard_normal((N, np.prod(shape))).astype(np.float32)
    return features, rng.integers(CLASSES, size=N), shape


def trained(name, batches, shape):
    """The values of a model that saw these batches once, with noise that hides nothing."""
    method = methods.load(name)
    parameters = methods.parameters(name, METHODS[name] | {"learning_rate": 1.0})
    problem = Problem(N, shape, CLASSES, Budget("1000", 1e-3))
    plan, source = method.plan(parameters, problem), NoiseSource("seeded", "places", 4)
    model = method.fit(method.prepare(batches, parameters, problem), parameters, problem, plan, source).model
    values = model.state.values() if name == "network_dpsgd" else [model.weights]
    return np.concatenate([np.ravel(value) for value in values])


@pytest.mark.parametrize("gone", [0, 17, N - 1])
@pytest.mark.parametrize("name", METHODS)
def test_leaving_a_record_out_is_leaving_its_place_empty(name, gone):
    """A record with a value that is no number contributes zero where it stands: what zero-out adjacency is about."""
    features, labels, shape = rows(name)
    emptied = features.copy()
    emptied[gone, 0] = np.nan
    stay = np.delete(np.arange(N), gone)
    whole = trained(name, [(features, labels)], shape)
    empty = trained(name, [(emptied, labels)], shape)
    left = trained(name, Kept(features[stay], labels[stay], stay), shape)
    assert np.abs(whole - empty).max() > 1e-3, "the record matters"
    np.testing.assert_allclose(left, empty, atol=1e-5)


def test_without_a_word_on_places_the_first_are_taken():
    assert Units(3).at(np.array([4, 2, 0, 3])).tolist() == [2, 0]


def test_places_are_of_single_rows():
    with pytest.raises(ValueError, match="2 places for 3 units"):
        Units(3).seat(np.arange(2), 5)
    with pytest.raises(ValueError, match="must be one row"):
        Units(3, np.array(["a", "a", "b"])).seat(np.arange(2), 5)
    units = Units(3)
    units.seat(np.array([1, 4, 2]), 6)
    assert units.at(np.array([5, 4, 0, 1, 2])).tolist() == [1, 0, 2]
