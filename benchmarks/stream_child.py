"""One task in a process of its own, for stream.py: prints as JSON the seconds of its passes and its peak memory."""

import json
import resource
import sys
import time
from collections.abc import Callable

import numpy as np
import torch

from benchmarks.gram import peak_tasks
from dpstudy.features.batches import ShardBatches
from dpstudy.methods import feature_covariance, first_order
from dpstudy.methods.gradients import Head, clipped_sum
from dpstudy.methods.grams import gram
from dpstudy.methods.hessians import class_hessians
from dpstudy.methods.problem import Problem
from dpstudy.methods.records import Records
from dpstudy.methods.row_map import RowMap
from dpstudy.methods.sufficient_statistics import accumulate
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.noise import NoiseSource

request = json.loads(sys.argv[1])
DIM, CLASSES, REPEATS = request["dim"], request["classes"], request["repeats"]
_BLOCKS, _BLOCK = 40, 1_000
_EXCEEDING = 1 << 40
_BATCH = 8192


def seconds(task: Callable[[], object], repeats: int) -> list[float]:
    """Wall seconds of each repeat."""
    found = []
    for _ in range(repeats):
        started = time.perf_counter()
        task()
        found.append(time.perf_counter() - started)
    return found


def peak() -> float:
    """Operations a second of the best square matrix product."""
    return max(operations / min(seconds(task, 4)) for operations, task in peak_tasks().values())


def products() -> float:
    """Seconds that the two matrix products of a gradient take for one record, in blocks as a pass has them."""
    blocks, weights = torch.randn(_BLOCKS, _BLOCK, DIM), torch.randn(CLASSES, DIM)
    scores, total = torch.randn(CLASSES, _BLOCK), torch.zeros(CLASSES, DIM)

    def both() -> None:
        for block in blocks:
            torch.mm(weights, block.T, out=scores)
            total.addmm_(scores, block)

    return min(seconds(both, 4)) / (_BLOCKS * _BLOCK)


def least_squares(batches: ShardBatches) -> dict:
    """The first pass and later ones."""

    def one() -> None:
        accumulate(batches, CLASSES, 1.0, threads=request["threads"])

    return {"Gram and targets, first": seconds(one, 1), "Gram and targets": seconds(one, REPEATS)}


def trained(method, batches: ShardBatches, parameters) -> dict:
    """Every step of a private training; the Gram by itself where the method has one."""
    problem, found, times = Problem(batches.rows, (DIM,), CLASSES, Budget("1", 1e-7)), {}, []
    data = method.prepare(batches, parameters, problem)
    if method is feature_covariance:
        found["Gram"] = seconds(lambda: gram(data.covariates), REPEATS)
    plan, source = method.plan(parameters, problem), NoiseSource("seeded", "benchmark", "train", 0, 0)
    method.fit(data, parameters, problem, plan, source, lambda *_: times.append(time.perf_counter()))
    return found | {"gradient step": np.diff(times).tolist()}


def newton(batches: ShardBatches) -> dict:
    """The Hessian blocks of some classes, and the gradient."""
    records = Records.read(batches, CLASSES).mapped(RowMap(clip=1.0))
    weights = records.place.array(torch.randn(CLASSES, DIM))
    some = range(request["newton_classes"])
    return {
        f"Hessians of {len(some)} classes": seconds(lambda: class_hessians(records, weights, "softmax", some), 1),
        "gradient": seconds(lambda: clipped_sum(records, weights, Head("softmax", 0.0, 1.0)), 1),
    }


def mini_batches(batches: ShardBatches) -> dict:
    """The gradient of a batch of records that are picked from a file of rows."""
    before = time.perf_counter()
    records = Records.read(batches, CLASSES, picked=True).mapped(RowMap(clip=1.0))
    made = time.perf_counter() - before
    weights = records.place.array(np.random.default_rng(0).standard_normal((CLASSES, DIM)), "float32")
    chance = np.random.default_rng(1)

    def one() -> None:
        clipped_sum(records, weights, Head("softmax", 0.0, 1.0), np.sort(chance.choice(batches.rows, _BATCH, False)))

    return {"file of rows": [made], f"batch of {_BATCH:,}": seconds(one, 2 * REPEATS)}


def main() -> None:
    """Measure the machine, then the task, then the machine again: others may use it too."""
    torch.set_num_threads(request["threads"])
    batches = ShardBatches(request["folders"])
    batches.nbytes = _EXCEEDING  # fewer rows are streamed too, as the most are
    steps = request["steps"] + 1  # the time of the first one is not seen
    common = {"clipping_norm": 0.01, "steps": steps, "curve_points": steps, "learning_rate": 1.0}
    tasks = {
        "least_squares": lambda: least_squares(batches),
        "feature_covariance": lambda: trained(
            feature_covariance, batches, feature_covariance.Parameters("published", ridge=1e-3, **common)
        ),
        "first_order": lambda: trained(
            first_order, batches, first_order.Parameters(**common, loss="sigmoid", bias=-10.0)
        ),
        "newton": lambda: newton(batches),
        "mini_batches": lambda: mini_batches(batches),
    }
    before = peak(), products()
    passes = tasks[request["task"]]()
    gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)
    after = peak(), products()
    result = {"peak": max(before[0], after[0]), "products": min(before[1], after[1]) * batches.rows}
    print(json.dumps(result | {"seconds": passes, "gib": gib}))


if __name__ == "__main__":
    main()
