"""Training from arrays in memory: the implementation of `dpstudy.fit` and `dpstudy.predict`."""

import inspect
from collections.abc import Mapping
from numbers import Real
from types import ModuleType
from typing import cast

import numpy as np

from dpstudy import methods
from dpstudy.core.errors import StudyError
from dpstudy.methods.arguments import (
    classes_of,
    delta_of,
    epsilon_of,
    features_of,
    integer_of,
    labels_of,
    shape_of,
    share_of,
    subjects_of,
)
from dpstudy.methods.averaging import Subjects, weights_by_name
from dpstudy.methods.calibrated import Calibrated, check_enough
from dpstudy.methods.problem import Problem, check_fit, check_plan
from dpstudy.methods.result import Result
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.ledger import FEATURES_BROUGHT, SHARED_NOISE, build_ledger, check_run
from dpstudy.privacy.noise import MODES, NoiseSource
from dpstudy.schema.methods import is_beyond_target, method_schema
from dpstudy.schema.validating import check_hyperparameters

CLASSES_READ = (
    "The number of classes was read off the private labels: a record of a further class would show. Give `classes`."
)


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
    contributions="sum",
    class_weights=None,
    shared_noise=False,
    public=None,
    calibration=None,
    thresholds=False,
    **options,
) -> Result:
    """See `dpstudy.methods.fit`."""
    features = features_of(features)
    labels = labels_of(labels, len(features))
    if not len(features):
        raise StudyError("there are no training rows to learn from")
    _check_switches(noise, shared_noise)
    seed, per_subject = integer_of(seed, "seed"), integer_of(per_subject, "per_subject", 1)
    positives = integer_of(positives, "positives", 1)
    if unit == "subject" and subjects is not None:
        subjects = subjects_of(subjects, len(features))
    n = _count_units(unit, subjects, per_subject, len(features))
    budget = Budget(epsilon_of(epsilon), delta_of(delta, n), accounting)
    not_accounted = [*([CLASSES_READ] if classes is None and labels.ndim == 1 else []), FEATURES_BROUGHT]
    classes = classes_of(labels, classes)
    shape = shape_of(shape, features.shape[1])
    records, averaged = per_subject if unit == "subject" else 1, _averages(contributions, name, unit)
    problem = Problem(
        n,
        shape,
        classes,
        budget,
        positives,
        sanitise,
        records,
        secure=noise == "secure",
        several=labels.ndim == 2,
        averaged=averaged,
        class_weights=_class_weights(class_weights, name, classes, labels.ndim == 2),
    )
    method = methods.load(name)
    parameters = methods.parameters(name, options)
    check_hyperparameters(name, {key: _plain(value) for key, value in options.items()})
    data_rows = Subjects([(features, labels)], np.asarray(subjects))
    if calibration is not None:
        if shared_noise:
            raise StudyError("calibration: shared_noise gives no guarantee to pay from; leave one out")
        check_enough(problem, share := share_of(calibration))
        method = cast(ModuleType, Calibrated(method, share, lambda: data_rows, _switched(thresholds)))
    elif _switched(thresholds):
        raise StudyError("thresholds: are of probabilities; give calibration too")
    plan = method.plan(parameters, problem)
    check_plan(plan, problem, name, is_beyond_target({"method": name} | options))
    beside = _beside(name, methods.load(name), public)
    data = method.prepare(data_rows, parameters, problem, **beside)
    suffix = ("" if calibration is None else f" {calibration}") + (" averaged" if averaged else "")
    suffix += f" thresholds {thresholds}" if thresholds else ""
    suffix += f" class weights {problem.class_weights}" if problem.class_weights else ""
    source = NoiseSource(noise, "api", f"{name} {parameters} {problem}{suffix}", "fit", seed, shared=shared_noise)
    fitted = method.fit(data, parameters, problem, plan, source)
    check_fit(fitted, name, problem)
    check_run(plan.events, source, problem.n)
    why_none = SHARED_NOISE if shared_noise else None
    ledger = build_ledger(
        plan.events,
        budget,
        n=problem.n,
        unit=unit,
        noise=noise,
        not_accounted=[*not_accounted, *plan.not_accounted],
        no_guarantee=why_none,
    )
    return Result(fitted.model, ledger)


def predict(model, features) -> np.ndarray:
    """See `dpstudy.methods.predict`."""
    if not hasattr(model, "scores"):
        raise StudyError(f"predict(model, features): {type(model).__name__} is no model; `fit(...).model` is one")
    features = features_of(features)
    try:
        return model.scores(features)
    except (ValueError, RuntimeError) as error:
        raise StudyError(f"features of shape {features.shape} do not fit this model: {error}") from error


def _switched(thresholds: bool | float) -> bool | float:
    if isinstance(thresholds, bool) or (isinstance(thresholds, float) and 0 < thresholds < 0.5):
        return thresholds
    raise StudyError(f"thresholds {thresholds!r}: must be True or False, or a share of mu^2 between 0 and 0.5")


def _averages(contributions: str, name: str, unit: str) -> bool:
    if contributions not in ("sum", "average"):
        raise StudyError(f"contributions {contributions!r}: must be 'sum' or 'average'")
    if contributions == "average" and unit != "subject":
        raise StudyError("contributions: average goes with unit='subject'; leave it out")
    if contributions == "average" and not method_schema(name).get("x-averages"):
        raise StudyError(f"contributions: {name} does not average the records of a person; set 'sum'")
    return contributions == "average"


def _class_weights(given, name: str, classes: int, several: bool) -> tuple[float, ...]:
    """The class weights as `Problem` holds them, from {class: weight}."""
    if not given:
        return ()
    if not isinstance(given, Mapping) or any(
        isinstance(one, bool) or not isinstance(one, Real) for one in given.values()
    ):
        raise StudyError(f"class_weights {given!r}: must be numbers by class, such as {{0: 0.2}}")
    if not method_schema(name).get("x-averages"):
        raise StudyError(f"class_weights: {name} does not weigh records; leave them out")
    return weights_by_name({str(key): one for key, one in given.items()}, [str(one) for one in range(classes)], several)


def _count_units(unit: str, subjects, per_subject: int, rows: int) -> int:
    if unit not in ("record", "subject"):
        raise StudyError(f"unit {unit!r}: must be 'record' or 'subject'")
    if unit == "record":
        if subjects is not None or per_subject != 1:
            raise StudyError("subjects and per_subject go with unit='subject'; leave them out")
        return rows
    if subjects is None:
        raise StudyError(f"unit 'subject': give `subjects`, whose each of the {rows} records is")
    names, counts = np.unique(np.asarray(subjects), return_counts=True)
    if counts.max() > per_subject:
        raise StudyError(
            f"unit 'subject': a subject has {counts.max()} records, but per_subject is {per_subject}; keep fewer, or "
            "raise it: noise grows with it"
        )
    return len(names)


def _plain(value):
    """A NumPy scalar as a plain Python number, which schemas accept."""
    return value.item() if isinstance(value, np.generic) else value


def _check_switches(noise: str, shared_noise: bool) -> None:
    if noise not in MODES:
        raise StudyError(f"noise {noise!r}: one of {', '.join(map(repr, MODES))}")
    if not isinstance(shared_noise, bool):
        raise StudyError(f"shared_noise {shared_noise!r}: must be True or False")


def _beside(name: str, method: ModuleType, public) -> dict[str, np.ndarray]:
    """The arguments of a method's `prepare` besides the records: public features, where there are some."""
    if public is None:
        return {}
    if "public" not in inspect.signature(method.prepare).parameters:
        raise StudyError(f"{name}: reads no public features; leave `public` out")
    return {"public": features_of(public).astype(np.float32)}
