"""Whole runs on a tape of releases: what private records move.

Before the noise a record less moves each sum by its sensitivity at most, whatever a method does with its records: were
others clipped, centred or weighted by what the one record is, they would move too. Behind it nothing moves: a model is
made of releases alone, whatever the records are and however many.
"""

import inspect
import zlib
from collections import defaultdict

import numpy as np
import pytest

from dpstudy import methods
from dpstudy.methods import schedule
from dpstudy.methods.problem import Problem
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.noise import NoiseSource
from tests.scenarios.methods.test_noise_asked_for import CLASSES, METHODS, N

DIM = 6
SGD = {"learning_rate": 0.5, "clipping_norm": 0.3, "steps": 4}
BEHIND = {case: settings for case, settings in METHODS.items() if "network" not in case} | {
    "first_order, adam": SGD | {"optimiser": "adam", "average": True},
    "first_order, averaged": SGD | {"moving_average": 0.5, "bias": -1.0, "loss": "sigmoid", "weight_decay": 0.1},
    "first_order, sampled moments": SGD
    | {"normalisation": {"mean_clip": 1.0, "square_clip": 2.0, "noise_multiplier": 30.0, "sampling_rate": 0.5}},
    "iterated_sgd, secret": {
        "learning_rate": 0.5,
        "clipping_norm": 0.3,
        "batch_size": 10,
        "epochs": 1,
        "radius": 1.0,
        "order": "secret",
    },
    "kernel_mean, plain": {"frequencies": 20, "projection": "none", "widen": 0.5},
    "feature_covariance, averaged": {"average": True, "steps": 4, "ridge": 0.1},
    "least_squares, given": {"ridge": 1.0, "center_targets": False},
}
# where batches are Poisson samples, a record less has others drawn; sums of networks are rounded otherwise
WHOLE = [case for case in METHODS if "network" not in case and case not in ("first_order, batches", "first_order, cut")]
LAST = {"long": (1e4, 0), "short": (1e-2, 1), "usual": (1.0, 2)}  # length and label of the record that is left out


class Tape(NoiseSource):
    """Its releases are noise alone, the same for all runs; it keeps what should have been noised."""

    def __init__(self):
        super().__init__("secure", "cell")
        self.queries: dict[tuple[str, int], dict[str, np.ndarray]] = defaultdict(dict)

    def sampling(self, name):
        return np.random.default_rng(7)

    def released(self, name, query, std, step=0, tensor="", symmetric=False):
        self.queries[name, step][tensor] = query.astype(np.float64)
        rng = np.random.default_rng(zlib.crc32(repr((name, step, tensor)).encode()))
        noise = std * rng.standard_normal(query.shape)
        return (noise + noise.T if symmetric else noise).astype(query.dtype)


@pytest.mark.parametrize("last", LAST)
@pytest.mark.parametrize("case", WHOLE)
def test_a_record_less_moves_each_release_by_at_most_its_sensitivity(case, last):
    name = case.split(",")[0]
    method, parameters = methods.load(name), methods.parameters(name, METHODS[case])
    problem = Problem(N, (DIM,), CLASSES, Budget("4", 1e-3), secure=True)
    plan, rng = method.plan(parameters, problem), np.random.default_rng(3)
    # all in about one direction: whatever moved all of them a little would add up
    features = (3 + rng.standard_normal((N, DIM))) / 8 * 10 ** rng.uniform(-1, 1, (N, 1))
    labels, (length, label) = np.where(np.arange(N) % 5, 0, rng.integers(CLASSES, size=N)), LAST[last]
    features[-1] *= length / np.linalg.norm(features[-1])
    labels[-1] = label
    tapes = []
    for rows in (N, N - 1):
        tapes.append(Tape())
        data = method.prepare([(features[:rows].astype(np.float32), labels[:rows])], parameters, problem)
        method.fit(data, parameters, problem, plan, tapes[-1])
    bounds = defaultdict(list)
    for event in plan.events:  # of one name in the order of the steps
        bounds[event.name] += [event.sensitivity] * event.count
    moved = 0.0
    for (release, step), tensors in sorted(tapes[0].queries.items()):
        others = tapes[1].queries[release, step]
        move = sum(np.linalg.norm(query - others[tensor]) ** 2 for tensor, query in tensors.items()) ** 0.5
        assert move <= bounds[release].pop(0) * (1 + 1e-9), (release, step)
        moved = max(moved, move)
    assert moved > 0 and not any(bounds.values())


@pytest.mark.parametrize("case", BEHIND)
def test_a_model_and_its_curve_are_made_of_releases_alone(case, tmp_path, monkeypatch):
    monkeypatch.setattr(schedule, "calibrate", lambda events_at, budget: 50.0)  # of samples it takes seconds
    name, path = case.split(",")[0], tmp_path / "model.safetensors"
    method, parameters = methods.load(name), methods.parameters(name, BEHIND[case])
    problem = Problem(N, (DIM,), CLASSES, Budget("2", 1e-3), secure=True)
    plan, found = method.plan(parameters, problem), []
    for data_set, rows in enumerate((N, N, N, N - 1, N - 9, 3)):
        rng = np.random.default_rng(data_set)
        features = (rng.standard_normal((rows, DIM)) + 3 * (data_set % 2)) * 10.0 ** (data_set - 2)
        labels = rng.integers(CLASSES, size=rows)
        models = []

        def save(_, model, models=models):
            model.save(path)
            models.append(path.read_bytes())

        more = {"monitor": save} if "monitor" in inspect.signature(method.fit).parameters else {}
        data = method.prepare([(features.astype(np.float32), labels)], parameters, problem)
        save(0, method.fit(data, parameters, problem, plan, Tape(), **more).model)
        found.append(models)
    assert all(models == found[0] for models in found)
