"""Training from arrays in memory: what `dpstudy.fit` does."""

from dataclasses import dataclass

import numpy as np

from dpstudy import methods
from dpstudy.errors import StudyError
from dpstudy.methods.problem import Problem
from dpstudy.models.linear import LinearModel
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.ledger import SHARED_NOISE, build_ledger, check_releases
from dpstudy.privacy.noise import NoiseSource


@dataclass(frozen=True)
class Result:
    """A trained model with the ledger that says what it cost."""

    model: LinearModel
    ledger: dict


def fit(
    name,
    features,
    labels,
    *,
    epsilon,
    delta,
    seed=0,
    noise="seeded",
    classes=None,
    positives=1,
    shape=None,
    sanitise="full",
    accounting="certified",
    unit="record",
    shared_noise=False,
    **options,
) -> Result:
    """See `dpstudy.methods.fit`."""
    features, labels = np.asarray(features), np.asarray(labels)
    _check_rows(features, labels, delta, unit)
    classes = classes or (labels.shape[1] if labels.ndim == 2 else int(labels.max()) + 1)
    text = epsilon if isinstance(epsilon, str) else f"{epsilon:g}"
    budget = Budget(text, delta, accounting)
    problem = Problem(len(features), tuple(shape or features.shape[1:]), classes, budget, positives, sanitise)
    method = methods.load(name)
    parameters = methods.parameters(name, options)
    plan = method.plan(parameters, problem)
    data = method.prepare([(features, labels)], parameters, problem)
    source = NoiseSource(noise, "api", f"{name} {parameters} {problem}", "fit", seed, shared=shared_noise)
    fitted = method.fit(data, parameters, problem, plan, source)
    check_releases(plan.events, source.drawn)
    why_none = SHARED_NOISE if shared_noise else None
    ledger = build_ledger(plan.events, budget, n=problem.n, unit=unit, noise=noise, no_guarantee=why_none)
    return Result(fitted.model, ledger)


def _check_rows(features: np.ndarray, labels: np.ndarray, delta: float, unit: str) -> None:
    if features.ndim != 2 or not len(features):
        raise StudyError(f"features of shape {features.shape}: must be (n, d) with at least one row")
    if labels.ndim not in (1, 2) or len(labels) != len(features):
        raise StudyError(f"labels of shape {labels.shape}: must be ({len(features)},) or ({len(features)}, classes)")
    if unit != "record":
        raise StudyError(f"unit {unit!r}: no method of this version bounds what a subject contributes; use 'record'")
    if not delta < 1 / len(features):
        raise StudyError(
            f"delta {delta!r} is not below 1/n = 1/{len(features)}: "
            "a guarantee that weak permits publishing a record outright"
        )
