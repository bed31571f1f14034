"""Averages of the iterates are post-processing: the model is the average of what a run without one would release."""

import numpy as np
import pytest

from dpstudy.core.errors import StudyError
from dpstudy.methods import first_order
from dpstudy.methods.problem import Problem
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.noise import NoiseSource

STEPS = 9


def iterates(**options):
    """The weights of the models that a run releases after each step, and its plan."""
    rng = np.random.default_rng(7)
    rows = rng.standard_normal((50, 6)).astype(np.float32), rng.integers(3, size=50)
    problem, found = Problem(50, (6,), 3, Budget("2", 1e-5)), []
    whole = {"learning_rate": 0.5, "clipping_norm": 0.8, "steps": STEPS, "curve_points": STEPS}
    parameters = first_order.Parameters(**(whole | options))
    plan = first_order.plan(parameters, problem)
    data = first_order.prepare([rows], parameters, problem)
    source = NoiseSource("seeded", "test", 5)
    first_order.fit(data, parameters, problem, plan, source, lambda _, model: found.append(model.weights.copy()))
    return np.array(found, np.float64), plan


@pytest.mark.parametrize("decay", [0.05, 0.6, 0.9999])
def test_an_exponential_average_is_that_of_the_plain_iterates(decay):
    plain, plan = iterates()
    averaged, same = iterates(moving_average=decay)
    assert same == plan, "no noise more or less"
    mean, expected = np.zeros_like(plain[0]), []  # softmax training starts at zero
    for step, weights in enumerate(plain):
        keep = min(decay, (1 + step) / (10 + step))
        mean = keep * mean + (1 - keep) * weights
        expected.append(mean)
    assert averaged == pytest.approx(np.array(expected), abs=1e-5)
    assert abs(averaged[-1] - plain[-1]).max() > 1e-3


def test_the_mean_of_the_tail_is_that_of_the_plain_iterates():
    plain, _ = iterates()
    averaged, _ = iterates(average=True)
    assert averaged[-1] == pytest.approx(plain[STEPS // 2 :].mean(axis=0), abs=1e-5)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"moving_average": 1.0}, r"moving_average 1.0: must be in \[0, 1\)"),
        ({"moving_average": 0.9, "average": True}, "average and moving_average: choose one"),
    ],
)
def test_averages_that_are_none_are_refused(options, sentence):
    with pytest.raises(StudyError, match=sentence):
        first_order.Parameters(learning_rate=1.0, clipping_norm=1.0, steps=2, **options)
