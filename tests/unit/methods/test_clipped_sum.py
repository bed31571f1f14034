"""What clips a contribution is what its ledger entry is computed from: changing one changes the other."""

import re

import pytest

from dpstudy import methods
from dpstudy.auditing.checked_method import CheckedMethod
from dpstudy.auditing.sensitivity import sensitivity
from dpstudy.methods.clipped_sum import ClippedSum
from dpstudy.methods.problem import Problem
from dpstudy.privacy.budget import Budget

STEPS = {"learning_rate": 0.25, "clipping_norm": 1.0}
METHODS = {
    "least_squares": {"clipping_norm": 1.0},
    "feature_covariance": {"variant": "published", "steps": 2, "learning_rate": 0.5, "clipping_norm": 1.0},
    "newton": {"variant": "published", "steps": 2, "clipping_norm": 1.0},
    "first_order": STEPS | {"batch_size": "full", "steps": 2},
    "iterated_sgd": STEPS | {"batch_size": 10, "epochs": 2},
}


def test_a_unit_of_several_records_and_products_of_contributions():
    rows = ClippedSum(0.5, records=3)
    assert rows.sensitivity() == rows.sensitivity("zero-out") == 1.5 and rows.sensitivity("replace-one") == 3.0
    assert rows.products.sensitivity() == 0.75 and rows.times(2.0).sensitivity() == 3.0
    event = rows.event("sum", 4.0, 5, sampling="poisson", sampling_rate=0.1)
    assert (event.mechanism, event.sensitivity, event.count, event.deviation) == ("gaussian", 1.5, 5, 6.0)
    assert rows.clip == 0.5 and ClippedSum(0.5, clipped=False).clip == float("inf")


@pytest.mark.parametrize("name", sorted(METHODS))
@pytest.mark.parametrize("factor", [0.25, 4.0])
def test_whatever_norm_a_sum_has_its_contributions_are_clipped_to(name, factor, monkeypatch):
    ordinary = Problem.sum_of
    monkeypatch.setattr(Problem, "sum_of", lambda self, norm: ordinary(self, factor * norm))
    problem = Problem(200, (6,), 3, Budget("4", 1e-4))
    checked = CheckedMethod(name, methods.load(name), methods.parameters(name, METHODS[name]), problem)
    largest = [float(share) for share in re.findall(r"\d\.\d\d", sensitivity(checked))]
    assert largest and max(largest) > 0.5  # a clip that stayed behind would give more than 1, or at most a quarter
