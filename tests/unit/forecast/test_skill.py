"""Skills and the metrics that go with them, against integrals and simulation."""

import numpy as np
import pytest
from scipy.special import ndtr

from dpstudy.forecast.curves import CLASSES, ONE, SEVERAL
from dpstudy.forecast.skill import skill_of, value_of
from dpstudy.tables.ceiling import accuracy


@pytest.mark.parametrize("classes", [2, 10, 100])
@pytest.mark.parametrize("skill", [0.0, 0.3, 1.7, 5.0])
def test_the_accuracy_is_that_of_the_integral(skill, classes):
    assert value_of(skill, CLASSES, classes) == pytest.approx(100 * accuracy(skill, classes), abs=0.02)


def test_the_area_is_that_of_two_normal_distributions():
    random = np.random.default_rng(0)
    inside, outside = random.normal(1.2 * np.sqrt(2), 1, 20_000), random.normal(0, 1, 20_000)
    assert (
        value_of(1.2, ONE, 2)
        == pytest.approx(np.mean(inside > outside), abs=0.01)
        == pytest.approx(ndtr(1.2), abs=0.01)
    )


@pytest.mark.parametrize(("task", "classes"), [(CLASSES, 10), (CLASSES, 100), (ONE, 2), (SEVERAL, 8)])
def test_one_is_the_inverse_of_the_other(task, classes):
    for skill in (0.05, 0.5, 2.0, 4.0):
        assert skill_of(value_of(skill, task, classes), task, classes) == pytest.approx(skill, abs=1e-3)
    assert skill_of(0.0, task, classes) == 0
