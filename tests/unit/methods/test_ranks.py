"""Two processes that share a training: the result of one, noise drawn once, and equal parameters."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dpstudy.methods.ranks import Ranks, current
from tests.unit.methods.ranks_child import trained

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
AUGMENTED = {"augmentation": {"multiplicity": 2, "pad": 1}, "moving_average": 0.5, "micro_batch": 4}
NORMALISED = {
    "normalisation": {"mean_clip": 1.0, "square_clip": 1.0, "noise_multiplier": 50.0}, "batch_size": "full",
}  # fmt: skip


def shared(folder, mode, options):
    """[(weights, releases drawn) of each of two processes]."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    path = f"{ROOT}:{ROOT / 'workflow'}"
    done = subprocess.run(
        [*command, "-m", "tests.unit.methods.ranks_child", str(folder), mode, json.dumps(options)],
        env=os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return [(dict(np.load(folder / f"{r}.npz")), json.loads((folder / f"{r}.json").read_text())) for r in (0, 1)]


FULL = {"augmentation": {"multiplicity": 2}, "batch_size": "full", "micro_batch": 4}


@pytest.mark.parametrize("options", [AUGMENTED, NORMALISED, FULL])
def test_two_processes_train_as_one(options, tmp_path):
    """Each of the two from a file of its records, as if they were too many for memory."""
    alone, drawn = trained("seeded", options)
    (first, drew), (second, idle) = shared(tmp_path, "seeded", options)
    assert drew == drawn and idle == {}, "noise is drawn once"
    for name, value in alone.state.items():
        np.testing.assert_array_equal(first[name], second[name], err_msg=name)
        np.testing.assert_allclose(first[name], value, atol=2e-5, err_msg=name)


@pytest.mark.parametrize("options", [AUGMENTED, {"preconditioning": {}, "optimiser": "sgd"}])
def test_with_secure_noise_too_they_end_alike(options, tmp_path):
    """Start, batches, augmentation and noise come from the operating system, once for both."""
    (first, drew), (second, idle) = shared(tmp_path, "secure", options)
    assert drew == {"gradient": 3} and idle == {}
    for name, value in first.items():
        np.testing.assert_array_equal(value, second[name], err_msg=name)


def test_alone_there_is_nothing_to_share():
    assert (current().rank, current().size, current().first) == (0, 1, True)
    assert Ranks().agreed("x") == "x"
