"""Independent noise differs between classes and steps; the control, mehta2023's released code, does not.

Records that hold no numbers leave nothing but noise, so a trained head is noise and what was made of it.
"""

import importlib
import math
import secrets

import numpy as np
import pytest

from dpstudy.methods.problem import Problem
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.noise import NoiseSource

N, DIM, CLASSES = 40, 500, 8
ENTRIES = [
    ("least_squares", {"variant": "published"}),
    ("least_squares", {"variant": "published", "floor": False}),
    ("first_order", {"learning_rate": 1.0, "clipping_norm": 0.1, "optimiser": "sgd", "bias": -10.0, "loss": "sigmoid"}),
    ("feature_covariance", {"variant": "published", "learning_rate": 1.0, "ridge": 1e3, "clipping_norm": 0.1}),
    ("newton", {"variant": "published", "learning_rate": 1.0, "ridge": 1e3}),
]
STEPS = 3


def heads(name, options, shared):
    """(class, d) weights after each step, of a run on records that hold no numbers."""
    method = importlib.import_module(f"dpstudy.methods.{name}")
    stepped = name != "least_squares"
    steps = {"steps": STEPS, "curve_points": STEPS} if stepped else {}
    problem = Problem(N, (DIM,), CLASSES, Budget("1", 1e-5))
    parameters = method.Parameters(**options, **steps)
    plan = method.plan(parameters, problem)
    rows = np.full((N, DIM), math.nan, np.float32), np.arange(N) % CLASSES
    data = method.prepare([rows], parameters, problem)
    source = NoiseSource("seeded", "test", secrets.randbits(50), shared=shared)
    path = [np.zeros((CLASSES, DIM))]
    watch = {"monitor": lambda step, model: path.append(model.weights.astype(np.float64))} if stepped else {}
    model = method.fit(data, parameters, problem, plan, source, **watch).model
    return np.diff(path, axis=0) if stepped else model.weights[None].astype(np.float64)


def correlations(vectors):
    return np.corrcoef(vectors)[np.triu_indices(len(vectors), 1)]


@pytest.mark.parametrize(("name", "options"), ENTRIES)
def test_independent_noise_differs_between_classes_and_steps_and_the_control_does_not(name, options):
    independent, control = heads(name, options, shared=False), heads(name, options, shared=True)
    assert np.abs(correlations(independent.reshape(-1, DIM))).max() < 6 / math.sqrt(DIM)
    assert correlations(control.reshape(-1, DIM)).min() > 0.99
    # between two classes the control's noise cancels: their difference would be released as it is
    scale = np.abs(control[0]).mean()
    assert np.abs(control[0] - control[0][0]).max() < 1e-3 * scale < np.abs(independent[0] - independent[0][0]).max()
