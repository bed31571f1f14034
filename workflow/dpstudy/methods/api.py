"""Training from arrays in memory: what `dpstudy.fit` does."""

from dataclasses import dataclass

import numpy as np

from dpstudy import methods
from dpstudy.errors import StudyError
from dpstudy.methods.problem import Problem
from dpstudy.models import Model
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.ledger import SHARED_NOISE, build_ledger, check_run
from dpstudy.privacy.noise import NoiseSource


@dataclass(frozen=True)
class Result:
    """A trained model with the ledger that says what it cost."""

    model: Model
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
    subjects=None,
    per_subject=1,
    shared_noise=False,
    public=None,
    **options,
) -> Result:
    """See `dpstudy.methods.fit`."""
    features, labels = np.asarray(features), np.asarray(labels)
    _check_rows(features, labels)
    n = _count_units(unit, subjects, per_subject, len(features))
    if not delta < 1 / n:
        raise StudyError(
            f"delta {delta!r} is not below 1/n = 1/{n}: a guarantee that weak permits publishing a record outright"
        )
    classes = classes or (labels.shape[1] if labels.ndim == 2 else int(labels.max()) + 1)
    text = epsilon if isinstance(epsilon, str) else f"{epsilon:g}"
    budget = Budget(text, delta, accounting)
    shape = tuple(shape or features.shape[1:])
    problem = Problem(n, shape, classes, budget, positives, sanitise, per_subject if unit == "subject" else 1)
    method = methods.load(name)
    parameters = methods.parameters(name, options)
    plan = method.plan(parameters, problem)
    beside = {} if public is None else {"public": np.asarray(public, np.float32)}
    data = method.prepare(_Rows(features, labels, subjects), parameters, problem, **beside)
    source = NoiseSource(noise, "api", f"{name} {parameters} {problem}", "fit", seed, shared=shared_noise)
    fitted = method.fit(data, parameters, problem, plan, source)
    check_run(plan.events, source)
    why_none = SHARED_NOISE if shared_noise else None
    ledger = build_ledger(plan.events, budget, n=problem.n, unit=unit, noise=noise, no_guarantee=why_none)
    return Result(fitted.model, ledger)


class _Rows(list):
    """All rows as one batch, which can say whose they are."""

    def __init__(self, features: np.ndarray, labels: np.ndarray, subjects):
        super().__init__([(features, labels)])
        self._subjects = subjects

    def subjects(self) -> np.ndarray:
        return np.asarray(self._subjects)


def _count_units(unit: str, subjects, per_subject: int, rows: int) -> int:
    if unit not in ("record", "subject"):
        raise StudyError(f"unit {unit!r}: must be 'record' or 'subject'")
    if unit == "record":
        if subjects is not None or per_subject != 1:
            raise StudyError("subjects and per_subject go with unit='subject'; leave them out")
        return rows
    if subjects is None or len(subjects) != rows:
        raise StudyError(f"unit 'subject': give `subjects`, whose each of the {rows} records is")
    names, counts = np.unique(np.asarray(subjects), return_counts=True)
    if counts.max() > per_subject:
        raise StudyError(
            f"unit 'subject': a subject has {counts.max()} records, but per_subject is {per_subject}; keep fewer, or "
            "raise it: noise grows with it"
        )
    return len(names)


def _check_rows(features: np.ndarray, labels: np.ndarray) -> None:
    if features.ndim != 2 or not len(features):
        raise StudyError(f"features of shape {features.shape}: must be (n, d) with at least one row")
    if labels.ndim not in (1, 2) or len(labels) != len(features):
        raise StudyError(f"labels of shape {labels.shape}: must be ({len(features)},) or ({len(features)}, classes)")
