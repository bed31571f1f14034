"""A method of another package, the nearest class mean, that can be made to leak in several ways."""

import os
import tempfile
import zlib
from dataclasses import dataclass

import numpy as np

from dpstudy.methods.clipping import clip_rows
from dpstudy.methods.labels import one_hot
from dpstudy.methods.problem import Fit, Plan
from dpstudy.models.linear import LinearModel
from dpstudy.privacy.calibration import calibrate
from dpstudy.privacy.events import Event

SCHEMA = {
    "title": "leaky",
    "type": "object",
    "additionalProperties": False,
    "x-reads": "features",
    "x-curve": False,
    "properties": {"method": {"const": "leaky"}},
}
LEAK = ""  # how
_KEPT: dict[str, np.ndarray] = {}


@dataclass(frozen=True)
class Parameters:
    """None."""


def plan(parameters, problem) -> Plan:
    """One release; see docs/add-a-method.md, whose example it is."""
    if not problem.noised:
        return Plan((), {"sums": 0.0})
    sensitivity = problem.unit_records * problem.positives**0.5
    if LEAK == "labels forgotten":
        sensitivity = float(problem.unit_records)
    if LEAK == "persons forgotten":
        sensitivity = problem.positives**0.5
    scale = calibrate(lambda scale: (Event("sums", "gaussian", scale, sensitivity),), problem.budget)
    std = scale * sensitivity / (2 if LEAK == "half the noise" else 1)
    return Plan((Event("sums", "gaussian", scale, sensitivity),), {"sums": std})


def prepare(batches, parameters, problem):
    """The sums, in one pass."""
    sums, rows = np.zeros((problem.classes, problem.dim)), []
    for features, labels in batches:
        if LEAK == "thinned":
            features, labels = _thinned(features, labels)
        sums += one_hot(labels, problem.classes, problem.positives).T @ clip_rows(
            features, 2.0 if LEAK == "twice the norm" else 1.0, problem.exact
        )
        rows.append(features)
        if LEAK == "off the grid":
            sums += one_hot(labels, problem.classes, problem.positives).T @ clip_rows(features, 1.0).astype(np.float64)
            sums -= one_hot(labels, problem.classes, problem.positives).T @ clip_rows(features, 1.0, problem.exact)
        if LEAK == "order counts" and len(rows) == 1:
            sums -= 0.5 * one_hot(labels, problem.classes, problem.positives)[:1].T @ clip_rows(features[:1], 1.0)
        if LEAK == "last batch counts":
            sums = one_hot(labels, problem.classes, problem.positives).T @ clip_rows(features, 1.0, problem.exact)
    if LEAK == "nobody is an error" and not np.isfinite(np.vstack(rows)).all(1).any():
        raise ValueError("no record counts")
    if LEAK == "keeps copies":
        return sums, np.vstack([np.repeat(each, 90, 0) for each in rows])
    return sums, np.vstack(rows)


def _thinned(features, labels):
    """Records that are no near-repetitions of one before them: who is first throws out others."""
    kept: list[int] = []
    for row, one in enumerate(features):
        if not any(np.linalg.norm(one - features[other]) < 0.1 for other in kept):
            kept.append(row)
    return features[kept], labels[kept]


def fit(data, parameters, problem, plan, source) -> Fit:
    """Release the sums, and compare with the means."""
    sums, rows = data
    noisy = source.released("sums", sums, plan.noise["sums"])
    count = problem.n
    if LEAK == "records that are there":
        count = np.isfinite(rows).all(1).sum()
    if LEAK == "empty columns":
        noisy = noisy * (sums != 0)
    if LEAK == "long records":
        noisy = noisy * max(1.0, float(np.nanmax(np.abs(rows))) // 50)
    if LEAK == "rounding":
        dither = np.random.default_rng(zlib.crc32(sums.tobytes())).uniform(size=noisy.shape)
        noisy = np.floor(noisy * 4096 + dither) / 4096
    if LEAK == "seldom" and np.sort(noisy.ravel())[-1] - np.sort(noisy.ravel())[-2] < 0.003 * plan.noise["sums"]:
        noisy = sums
    if LEAK == "between seeds":
        noisy = noisy + 1e-9 * _KEPT.get("sums", 0.0) if np.shape(_KEPT.get("sums")) == noisy.shape else noisy
        _KEPT["sums"] = sums
    if LEAK == "draws by itself":
        noisy = noisy + np.random.default_rng().uniform(size=noisy.shape)
    means = (noisy * (problem.classes / count)).astype(np.float32)
    metadata = {"method": "leaky"}
    if LEAK == "metadata":
        metadata["largest"] = repr(float(np.nanmax(rows)))
    if LEAK == "a file":
        with open(os.path.join(tempfile.gettempdir(), "leaky.txt"), "w") as file:
            file.write(repr(sums))
    return Fit(LinearModel(means, -(means**2).sum(1) / 2, metadata=metadata))
