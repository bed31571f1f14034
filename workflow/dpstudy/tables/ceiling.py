"""The ceiling: the highest top-1 accuracy that a cell's released signal-to-noise allows, under a stated idealisation.

Idealisation: m balanced classes; every record of a class has the same feature, of norm C; the features of different
classes are orthogonal, and known (so is the Gram, without noise); a class's score is the inner product of a feature
with the class's released sum; the largest score wins.

Then the sum of a class has length n/m (in units of C) along its own feature, each class's score carries independent
noise of standard deviation s = noise multiplier * sensitivity / C, and with SNR = (n/m)/s a record is classified
rightly with probability

    integral phi(z) Phi(z + SNR)^(m-1) dz.

Independent releases of the same labels (the steps of a gradient method, what they add to the labels being known)
combine to SNR^2 = sum count (q n/m)^2 / s^2 with q the sampling rate.

What the idealisation leaves out makes real cells worse: classes overlap, records of a class differ, clipping shrinks,
the Gram is noisy. Two things can make them better, and must be thought of before a cell above its ceiling is called
wrong: features centred at their mean lie at obtuse angles, and targets may sum to zero over classes, which together
raise the SNR by at most (m/(m-1))^(3/2) (17 % at m = 10, 1.5 % at m = 100).
"""

import math
from collections.abc import Mapping

import numpy as np

from dpstudy.core.errors import StudyError

LABEL_BEARING = ("targets", "gradient", "calibration", "operating_points")
# They say nothing of the labels; class_grams do, but DP-LS inverts them, which only shrinks a class's own score.
LABEL_FREE = (
    "gram",
    "class_grams",
    "hessian",
    "mean",
    "normalisation_mean",
    "normalisation_square",
    "calibration_scale",
)

_REACH = 12.0  # standard deviations; what lies beyond weighs less than 1e-32


def accuracy(snr: float, classes: int) -> float:
    """Probability that a normal variable with mean `snr` exceeds m - 1 standard normal ones, to 1e-9.

    Args:
        snr: signal-to-noise ratio of the true class's score, at least 0.
        classes: m, at least 2.

    Raises:
        ValueError: a negative or undefined snr, or fewer than two classes.
    """
    from scipy.integrate import quad
    from scipy.special import log_ndtr, ndtri

    if not snr >= 0 or classes < 2:
        raise ValueError(f"a ceiling needs snr >= 0 and at least 2 classes, got {snr} and {classes}")

    def density(z: float) -> float:
        return math.exp(-z * z / 2 + (classes - 1) * log_ndtr(z + snr)) / math.sqrt(2 * math.pi)

    highest = -ndtri(1 / classes) - snr  # about where the largest of the others lies: the integrand rises there
    points = sorted({float(np.clip(highest + shift, -_REACH, _REACH)) for shift in (-2, 0, 2)})
    value, _ = quad(density, -_REACH, _REACH, points=points, epsabs=1e-11, epsrel=1e-11, limit=400)
    return min(1.0, value)


def cell_ceiling(ledger: Mapping, classes: int, clipping_norm: float | None = None) -> float | None:
    """The ceiling of one seed of a cell, in percent.

    Args:
        ledger: a ledger.json: its events, n and guarantee.
        classes: m.
        clipping_norm: C, the norm of a record's label-bearing part, where a release is not as sensitive as that
            (Newton: sqrt(m) C, or from sqrt(1 - 1/m) C to sqrt(2) C). Without it C is the sensitivity, and the ceiling
            still an upper one where that is larger.

    Returns:
        None where the ledger gives no guarantee, releases nothing that bears labels, or releases something that this
        module does not know.
    """
    if ledger["guarantee"] == "none":
        return None
    squared, known = 0.0, True
    for event in ledger["events"]:
        if event["name"] in LABEL_BEARING:
            noise = event["noise_multiplier"] * event["sensitivity"] / (clipping_norm or event["sensitivity"])
            signal = event["sampling_rate"] * ledger["n"] / classes
            squared += event["count"] * (signal / noise) ** 2
        else:
            known = known and event["name"] in LABEL_FREE
    return 100 * accuracy(math.sqrt(squared), classes) if known and squared else None


def label_norm(metrics: Mapping) -> float | None:
    """The `clipping_norm` for `cell_ceiling` of a cell with this metrics.json; None except for Newton.

    Newton clips features to C, and its releases are not as sensitive as a record's labels times that.
    """
    return metrics["hyperparameters"]["clipping_norm"] if metrics["method"] == "newton" else None


def published_ceiling(method: str, epochs: int, n: int, classes: int, epsilon: str, delta: float) -> float:
    """The ceiling of a printed cell of mehta2023, with the paper's sensitivities, in percent.

    zCDP by rho + 2 sqrt(rho ln 1/delta) for DP-LS (Theorem 2.2), DP-Newton (2.1, with sensitivity sqrt(m) C) and
    DP-FC (2.3); Renyi DP for DP-Adam (B.1).

    Args:
        method: "DP-LS", "DP-Newton", "DP-FC" or "DP-Adam".
        epochs: full-batch steps T.
        n, classes: of the private data set.
        epsilon: finite, as in a config.

    Raises:
        StudyError: another method.
    """
    from dpstudy.privacy.budget import Budget
    from dpstudy.privacy.calibration import calibrate
    from dpstudy.privacy.events import Event

    def release(name: str, count: int = 1, sensitivity: float = 1.0) -> Event:
        return Event(name, "gaussian", 1.0, sensitivity, count)

    root = math.sqrt(classes)
    releases = {
        "DP-LS": (release("gram"), release("class_grams"), release("targets")),
        "DP-Newton": (release("hessian", epochs, root / 4), release("gradient", epochs, root)),
        "DP-FC": (release("gram"), release("gradient", epochs)),
        "DP-Adam": (release("gradient", epochs),),
    }
    if method not in releases:
        raise StudyError(f"ceiling: mehta2023 prints no method {method!r}; there are {', '.join(releases)}")
    budget = Budget(epsilon, delta, "de2022" if method == "DP-Adam" else "mehta2023")
    scale = calibrate(lambda scale: [event.scaled(scale) for event in releases[method]], budget)
    events = [event.scaled(scale).to_json() for event in releases[method]]
    ceiling = cell_ceiling({"guarantee": "claimed", "n": n, "events": events}, classes, clipping_norm=1.0)
    if ceiling is None:
        raise ValueError(f"{method} releases nothing that bears labels")
    return ceiling
