"""One of the processes of test_ranks.py: a training, of which each process says where it ended."""

import json
import sys
from pathlib import Path

import numpy as np

from dpstudy.methods import network_dpsgd, ranks
from dpstudy.methods.problem import Problem
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.noise import NoiseSource

N, SHAPE, CLASSES = 30, (3, 8, 8), 3
OPTIONS = {"network": "wrn-10-1", "learning_rate": 0.3, "clipping_norm": 1.0, "batch_size": 12, "steps": 3}


def rows():
    rng = np.random.default_rng(2)
    return rng.standard_normal((N, *SHAPE)).astype(np.float32).reshape(N, -1), rng.integers(CLASSES, size=N)


class TooMany(list):
    """Batches of more records than memory holds."""

    nbytes = 1 << 40


def trained(mode: str, options: dict, batches=list):
    """The model, and how many releases this process drew."""
    parameters = network_dpsgd.Parameters(**OPTIONS | options)
    problem = Problem(N, SHAPE, CLASSES, Budget("8", 1e-3))
    plan, noise = network_dpsgd.plan(parameters, problem), NoiseSource(mode, "ranks")
    data = network_dpsgd.prepare(batches([rows()]), parameters, problem)
    return network_dpsgd.fit(data, parameters, problem, plan, noise).model, dict(noise.drawn)


if __name__ == "__main__":
    folder, mode, options = sys.argv[1:]
    with ranks.joined() as place:
        model, drawn = trained(mode, json.loads(options), TooMany)
    np.savez(Path(folder) / f"{place.rank}.npz", **model.state)
    (Path(folder) / f"{place.rank}.json").write_text(json.dumps(drawn))
