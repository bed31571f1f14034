"""Sums over many records, of all of which one is taken away: every block is cut elsewhere then, and what rounding makes
of it must not exceed what the record adds. Aligned records make it as bad as it gets."""

import numpy as np
import pytest

from dpstudy.core.arrays import to_numpy
from dpstudy.methods import records as held
from dpstudy.methods.feature_covariance import _release_targets
from dpstudy.methods.gradients import Head, clipped_sum
from dpstudy.methods.grams import gram
from dpstudy.methods.hessians import class_hessians, shared_hessian
from dpstudy.methods.problem import Problem
from dpstudy.methods.records import Records
from dpstudy.methods.row_map import RowMap
from dpstudy.privacy.budget import Budget

N, DIM, CLASSES, BLOCK = 200_000, 12, 3, 100
C = 0.7
SUMS = {  # name -> (sum of the records, what one of them adds at most)
    "gradient": (
        lambda found: clipped_sum(found, found.place.zeros(CLASSES, DIM), Head("softmax", 0.0, C)),
        C * np.sqrt(1 - 1 / CLASSES),  # shorter than what clips it, as the record is
    ),
    "bias": (lambda found: clipped_sum(found, found.place.zeros(CLASSES, DIM + 1), Head("softmax", "learned", C)), C),
    "hessian": (
        lambda found: class_hessians(found, found.place.zeros(CLASSES, DIM), "sigmoid", range(1)),
        C**2 / 4,
    ),
    "shared hessian": (
        lambda found: shared_hessian(found, found.place.zeros(CLASSES, DIM)),
        C**2 * (1 - 1 / CLASSES),
    ),
    "targets": (
        lambda found: _release_targets(found, Problem(1, (DIM,), CLASSES, Budget("inf", 1e-9)), None, None),
        C * np.sqrt(1 - 1 / CLASSES),
    ),
    "gram": (gram, C**2),
}


@pytest.mark.parametrize("name", SUMS)
def test_one_record_less_changes_a_long_sum_by_that_record(kind, name, monkeypatch):
    monkeypatch.setattr(held, "_BLOCK_VALUES", {"cpu": BLOCK * DIM, "cuda": BLOCK * DIM})
    features = np.random.default_rng(0).uniform(1, 2, (N, DIM)).astype(np.float32)
    whole, bound = SUMS[name]
    found = []
    for first in (0, 1):
        read = Records.read([(features[first:], np.zeros(N - first, int))], CLASSES)
        found.append(to_numpy(whole(read.mapped(RowMap(clip=C)))).astype(np.float64))
    change = np.linalg.norm(found[0] - found[1])
    assert 0.9 * bound < change <= 1.002 * bound
