"""Training from arrays in memory: what `dpstudy.fit` does."""

from dataclasses import dataclass

import numpy as np

from dpstudy import methods
from dpstudy.methods.problem import Problem
from dpstudy.models.linear import LinearModel
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.ledger import build_ledger, check_releases
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
    **options,
) -> Result:
    """See `dpstudy.methods.fit`."""
    features, labels = np.asarray(features), np.asarray(labels)
    classes = classes or (labels.shape[1] if labels.ndim == 2 else int(labels.max()) + 1)
    text = epsilon if isinstance(epsilon, str) else f"{epsilon:g}"
    budget = Budget(text, delta, accounting)
    problem = Problem(len(features), tuple(shape or features.shape[1:]), classes, budget, positives, sanitise)
    method = methods.load(name)
    parameters = methods.parameters(name, options)
    plan = method.plan(parameters, problem)
    data = method.prepare([(features, labels)], parameters, problem)
    source = NoiseSource(noise, "api", name, text, seed)
    fitted = method.fit(data, parameters, problem, plan, source)
    check_releases(plan.events, source.drawn)
    ledger = build_ledger(plan.events, budget, n=problem.n, unit=unit, noise=noise)
    return Result(fitted.model, ledger)
