"""NumPy and torch give the same numbers, and torch is left alone where it does not pay."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from dpstudy.core import arrays
from dpstudy.core.errors import StudyError

SHORT = {
    "least_squares": {},
    "first_order": {"learning_rate": 1.0, "clipping_norm": 1.0, "steps": 2, "batch_size": "full"},
    "newton": {},
    "feature_covariance": {},
    "iterated_sgd": {"learning_rate": 0.1, "clipping_norm": 1.0, "epochs": 1, "batch_size": 100},
    "kernel_mean": {},
}
CELL = """
import sys, dpstudy.core.arrays
dpstudy.core.arrays.has_driver = lambda: False
import numpy as np, dpstudy
drawn = np.random.default_rng(0)
x, y = drawn.standard_normal((300, 4)).astype(np.float16), drawn.integers(3, size=300)
found = dpstudy.fit(sys.argv[1], x, y, classes=3, epsilon=1.0, delta=1e-4, **eval(sys.argv[2]))
assert dpstudy.predict(found.model, x).shape == (300, 3)
print("torch" in sys.modules)
"""


@pytest.mark.parametrize("name", SHORT)
def test_a_short_cell_of_a_linear_method_imports_no_torch(name):
    call = [sys.executable, "-c", CELL, name, repr(SHORT[name])]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert done.stdout == "False\n", done.stderr


def test_a_driver_is_asked_for_its_gpu(monkeypatch):
    for driver, found, tensors, expected in (
        (False, True, False, (np, "cpu")),
        (True, False, False, (np, "cpu")),
        (True, True, False, (torch, "cuda")),
        (False, False, True, (torch, "cpu")),
        (False, True, True, (torch, "cuda")),
    ):
        monkeypatch.setattr(arrays, "has_driver", lambda driver=driver: driver)
        monkeypatch.setattr("torch.cuda.is_available", lambda found=found: found)
        where = arrays.place(tensors)
        assert (where.xp, where.device) == expected
    assert not torch.backends.cuda.matmul.allow_tf32


def test_arrays_go_where_they_belong():
    values = np.arange(6, dtype=np.float16).reshape(3, 2)
    here, there = arrays.HOST, arrays.Place(torch, "cpu")
    assert arrays.place_of(values) == here and arrays.place_of(there.array(values)) == there
    for where in (here, there):
        wide = where.array(there.array(values), "float32")
        assert arrays.place_of(wide) == where and wide.dtype == where.xp.float32
        assert arrays.to_numpy(wide) == pytest.approx(values.astype(np.float32))
        assert arrays.to_numpy(where.zeros(2, 3, dtype="float64")).dtype == np.float64
        assert where.empty(2, 3).shape == (2, 3)


@pytest.mark.parametrize("name", ["numpy", "torch"])
def test_what_they_spell_apart_equals_float64(name):
    where = arrays.Place({"numpy": np, "torch": torch}[name], "cpu")
    rng = np.random.default_rng(3)
    weights, x = rng.standard_normal((4, 6)), 3 * rng.standard_normal((9, 6))
    scores = weights @ x.T
    scores[0, 0], scores[1, 1] = 300, -300  # beyond what float32 holds the exponential of
    power = np.exp(scores - scores.max(0))
    labels = rng.integers(4, size=9)
    lessened = where.array(scores, "float32"), where.array(scores, "float32") + 0
    arrays.subtract_targets(lessened[0], where.array(labels))
    arrays.subtract_targets(lessened[1], where.array(np.eye(4)[labels], "float32"))
    total = rng.standard_normal((4, 6))
    grown = where.array(total, "float32")
    arrays.add_scaled(grown, where.array(weights, "float32"), -0.3)
    with np.errstate(over="ignore"):
        found = {
            "scores": arrays.scores_of(where.array(weights, "float32"), where.array(x, "float32")),
            "softmax": arrays.softmax(where.array(scores, "float32")),
            "sigmoid": arrays.sigmoid(where.array(scores, "float32")),
            "norms": arrays.row_norms(where.array(x, "float32")),
            "one hot": arrays.one_hot(where.array(labels), 4),
            "rows": arrays.take(where.array(x), where.array(np.array([7, 2, 2]))),
            "sum": grown,
            "less a label": lessened[0],
            "less several": lessened[1],
        }
    expected = {
        "scores": weights @ x.T,
        "softmax": power / power.sum(0),
        "sigmoid": 1 / (1 + np.exp(-scores)),
        "norms": np.sqrt((x**2).sum(1)),
        "one hot": np.eye(4)[labels],
        "rows": x[[7, 2, 2]],
        "sum": total - 0.3 * weights,
        "less a label": scores - np.eye(4)[labels].T,
        "less several": scores - np.eye(4)[labels].T,
    }
    for key, value in found.items():
        assert arrays.place_of(value) == where
        assert arrays.to_numpy(value) == pytest.approx(expected[key], rel=1e-5, abs=1e-6), key


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({}, True),
        ({"DPSTUDY_GPU": "0"}, False),
        ({"SLURM_JOB_ID": "7"}, False),
        ({"SLURM_JOB_ID": "7", "SLURM_JOB_GPUS": "0"}, True),
        ({"SLURM_JOB_ID": "7", "DPSTUDY_GPU": "1"}, True),
    ],
)
def test_a_job_that_was_given_no_gpu_has_none_on_a_node_with_some(told, expected, monkeypatch, tmp_path):
    for name in ("DPSTUDY_GPU", "SLURM_JOB_ID", *arrays._GIVEN):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "driver").touch()
    monkeypatch.setattr(arrays, "_DRIVERS", (str(tmp_path / "driver"),))
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    assert arrays.has_driver() is expected


def test_a_switch_that_is_neither_on_nor_off_is_refused(monkeypatch):
    monkeypatch.setenv("DPSTUDY_GPU", "yes")
    with pytest.raises(StudyError, match="DPSTUDY_GPU=yes: is 1 where jobs have a GPU, 0 where they have none"):
        arrays.has_driver()
