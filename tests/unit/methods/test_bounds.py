"""A clipping that leaves records too long ends the run, wherever contributions are made."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from dpstudy import fit
from dpstudy.core.arrays import place
from dpstudy.methods import clipping, gradients, record_gradients, row_map
from dpstudy.methods.bounds import hold
from dpstudy.methods.record_gradients import RecordGradients

RNG = np.random.default_rng(0)
FEATURES = RNG.standard_normal((300, 12)).astype(np.float32)
LABELS = RNG.integers(0, 3, 300)
GRADIENTS = {"learning_rate": 1.0, "clipping_norm": 0.1, "steps": 2}


def train(method, **options):
    return fit(method, FEATURES, LABELS, classes=3, epsilon=1.0, delta=1e-4, **options)


def too_long(monkeypatch, module, name, by=1.01):
    right = getattr(module, name)
    monkeypatch.setattr(module, name, lambda *arguments: by * right(*arguments))


@pytest.mark.parametrize(
    ("module", "name", "method", "options"),
    [
        (clipping, "_factors", "least_squares", {}),
        (row_map, "_clipping", "newton", {"variant": "published", "learning_rate": 1.0, "ridge": 1e-3, "steps": 1}),
        (row_map, "_to_unit", "feature_covariance", {}),
        (gradients, "_factors", "first_order", GRADIENTS),
        (gradients, "_factors", "feature_covariance", {}),
    ],
)
def test_one_percent_too_long_is_enough(monkeypatch, module, name, method, options):
    train(method, **options)
    if (module, place().device) == (clipping, "cuda"):
        module, name = row_map, "_clipping"
    too_long(monkeypatch, module, name)
    with pytest.raises(RuntimeError, match="a record contributes more than its bound of"):
        train(method, **options)


@pytest.mark.parametrize("layers", [[nn.Linear(12, 3)], [nn.Unflatten(1, (3, 2, 2)), nn.Conv2d(3, 4, 2), nn.Flatten()]])
def test_gradients_of_networks_are_measured_too(monkeypatch, layers):
    def sums():
        engine = RecordGradients(nn.Sequential(*layers))
        return engine.clipped_sum(torch.from_numpy(FEATURES[:16]), torch.from_numpy(LABELS[:16]), "softmax", 0.01)

    sums()
    too_long(monkeypatch, record_gradients, "clipping_factors")
    with pytest.raises(RuntimeError, match="clipped gradients of a network: a record contributes more"):
        sums()


def test_what_takes_no_part_and_what_is_not_clipped_is_let_be():
    hold("sum", np.array([0.5, math.nan, 1.00001]), 1.0)
    hold("sum", torch.tensor([1e9]), math.inf)
    with pytest.raises(RuntimeError):
        hold("sum", torch.tensor([1.0, 1.001]), 1.0)
