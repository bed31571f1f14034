"""What the published projection of instance-level smoothing tells of one record, after few epochs and after many.

The method publishes W as it was trained on private records, and its noise, which is added to points, has no epochs in
it. The attacker sees W alone and knows all other records, which are made up. The record is as long as they are and
lies in a direction that none of them has: W is trained there where the record takes part, and stays random elsewhere.
"""

import time

import numpy as np

from benchmarks.timing import table, title
from dpstudy.auditing.membership import area_under_curve
from dpstudy.methods import instance_smoothing
from dpstudy.methods.problem import Problem
from dpstudy.privacy.audit import distinguished
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.noise import NoiseSource
from dpstudy.privacy.printed import lower_bound

EPSILON, DELTA, CONFIDENCE = "2", 1e-5, 0.999
RECORDS, FEATURES, PROJECTED = 200, 32, 8
EPOCHS = (1, 10, 40)
RUNS = 2_000  # a side; a fifth of them fix the threshold


def records(present: bool) -> tuple[np.ndarray, np.ndarray]:
    """(n, d) features of norm 1 in two classes, and their labels; the attacked record is the first, where present."""
    rng = np.random.default_rng(0)
    labels = np.arange(RECORDS) % 2
    features = rng.standard_normal((RECORDS, FEATURES))
    features[:, 0] += 3.0 * labels - 1.5
    features[:, -1] = 0.0
    features[0] = np.eye(FEATURES)[-1]
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    first = 0 if present else 1
    return features[first:].astype(np.float32), labels[first:]


def statistics(epochs: int, present: bool, runs: int) -> np.ndarray:
    """(runs,) shares of W that lie in the record's direction, of as many trainings."""
    parameters = instance_smoothing.Parameters(projected_dim=PROJECTED, epochs=epochs, curve_points=1)
    problem = Problem(RECORDS, (FEATURES,), 2, Budget(EPSILON, DELTA))
    plan = instance_smoothing.plan(parameters, problem)
    data = instance_smoothing.prepare([records(present)], parameters, problem)
    shares = np.empty(runs)
    for run in range(runs):
        source = NoiseSource("seeded", "leaks", epochs, present, run)
        projection = instance_smoothing.fit(data, parameters, problem, plan, source).model.projection
        shares[run] = np.linalg.norm(projection[:, -1]) / np.linalg.norm(projection)
    return shares


def run(threads: int, repeats: int, rows: int | None = None) -> None:
    """Print the bounds, as workflow/published/leaks.csv has them.

    Args:
        rows: trainings a side.
    """
    import torch

    torch.set_num_threads(threads)
    runs = rows or RUNS
    title(
        f"Attacks on the projection of instance-level smoothing at a claimed epsilon of {EPSILON} ({runs} runs a side)"
    )
    found, cut = [], max(1, runs // 5)
    for epochs in EPOCHS:
        start = time.process_time()
        present, absent = (statistics(epochs, present, runs) for present in (True, False))
        held_out, tested = (present[:cut], absent[:cut]), (present[cut:], absent[cut:])
        lower = distinguished(held_out, tested, DELTA, CONFIDENCE)
        auc = area_under_curve(*tested)
        seconds = time.process_time() - start
        found.append(
            (
                EPSILON,
                str(epochs),
                str(runs - cut),
                str(CONFIDENCE),
                f"{auc:.3f}",
                lower_bound(lower, places=1),
                f"{seconds:.0f}",
            )
        )
        print(*found[-1], sep=",", flush=True)
    table(("claimed epsilon", "epochs", "runs a side", "confidence", "AUC", "epsilon at least", "CPU seconds"), found)
