"""Every private sum that a linear method releases, of given records, and by how much one record may move it."""

import math
from collections.abc import Callable

import numpy as np

from dpstudy.core.arrays import to_numpy
from dpstudy.methods import (
    feature_covariance,
    first_order,
    iterated_sgd,
    kernel_mean,
    least_squares,
    newton,
    private_mean,
    private_normalisation,
)
from dpstudy.methods.gradients import Head, clipped_sum
from dpstudy.methods.grams import gram
from dpstudy.methods.hessians import class_hessians, shared_hessian
from dpstudy.methods.private_normalisation import Normalisation
from dpstudy.methods.problem import Plan, Problem
from dpstudy.methods.row_map import RowMap
from dpstudy.privacy.budget import Budget

CLASSES, C = 3, 0.7
_STEPS = {"learning_rate": 1.0, "clipping_norm": C, "steps": 1}
_NORMALISED = Normalisation(C, C, 1.0)


class Watched:
    """A noise source without noise, which keeps what it is asked to noise."""

    def __init__(self):
        self.queries = {}

    def released(self, name, query, std, step=0, tensor="", symmetric=False):
        self.queries[name] = query
        return query.copy()


def weights_of(rows: int, dim: int) -> np.ndarray:
    """Some weights that are not zero."""
    return np.random.default_rng(7).normal(size=(rows, dim)).astype(np.float32)


def _read(method, parameters, x, y, problem):
    return method.prepare([(x, y)], parameters, problem)


def _statistics(name, x, y, problem):
    parameters = least_squares.Parameters(variant="published", clipping_norm=C)
    return getattr(_read(least_squares, parameters, x, y, problem), name)


def _head(loss, bias, x, y, problem, zero=False, clipping="norm"):
    parameters = first_order.Parameters(loss=loss, bias=bias, clipping=clipping, **_STEPS)
    records = _read(first_order, parameters, x, y, problem).records
    head = Head(loss, bias, C, clipping)
    weights = weights_of(CLASSES, x.shape[1] + head.learned) * (0 if zero else 1)
    return to_numpy(clipped_sum(records, records.place.array(weights), head))


def _newton(what, x, y, problem, loss="softmax"):
    parameters = newton.Parameters(clipping_norm=C, variant="softmax" if loss == "softmax" else "published")
    data = _read(newton, parameters, x, y, problem)
    weights = data.records.place.array(weights_of(CLASSES, x.shape[1]))
    if what == "gradient":
        return newton._gradient(data, weights, Head(loss, 0.0, math.inf, mean=False), 2)
    if what == "shared":
        return shared_hessian(data.records, weights)
    if what == "at zero":
        return newton._at_zero(data, 1 - 1 / CLASSES)
    return class_hessians(data.records, weights, loss, range(CLASSES))


def _covariance(what, x, y, problem):
    data = _read(feature_covariance, feature_covariance.Parameters(clipping_norm=C), x, y, problem)
    if what == "gram":
        return gram(data.covariates)
    if what == "mean":
        private_mean.release(data.covariates, problem, Plan((), {private_mean.MEAN: 0.0}), source := Watched())
        return source.queries[private_mean.MEAN]
    if what == "moved":
        rule = RowMap(unit_first=True, center=weights_of(1, x.shape[1])[0] / 9, unit=True)
        return gram(data.records.mapped(rule))
    return to_numpy(
        clipped_sum(data.records, data.records.place.array(weights_of(CLASSES, x.shape[1])), Head("softmax", 0.0, C))
    )


def _targets(x, y, problem):
    """Class sums of unit-norm records, as they are before they are centred and divided."""
    data = _read(feature_covariance, feature_covariance.Parameters(start_share=0.1), x, y, problem)
    plan = Plan((), {feature_covariance.TARGETS: 0.0})
    feature_covariance._release_targets(data.records, problem, plan, source := Watched())
    return source.queries[feature_covariance.TARGETS]


def _iterated(x, y, problem):
    parameters = iterated_sgd.Parameters(learning_rate=1.0, clipping_norm=C, batch_size=1, epochs=1)
    records = _read(iterated_sgd, parameters, x, y, problem).records.mapped(RowMap(clip=C))
    return to_numpy(
        clipped_sum(records, records.place.array(weights_of(CLASSES, x.shape[1])), Head("softmax", 0.0, math.inf))
    )


def _kernel(x, y, problem):
    parameters = kernel_mean.Parameters(projection="none", frequencies=8)
    data = _read(kernel_mean, parameters, x, y, problem)
    return kernel_mean._class_sums(data.records, kernel_mean.feature_map(parameters, problem, data, None), False)[0]


def _normalised(name, x, y, problem):
    parameters = first_order.Parameters(normalisation=_NORMALISED, **_STEPS)
    records = _read(first_order, parameters, x, y, problem).records
    return getattr(private_normalisation.shared_sums(records, _NORMALISED, problem), name)


RELEASES: dict[str, tuple[Callable, float]] = {
    "least_squares gram": (lambda *a: _statistics("gram", *a), C**2),
    "least_squares targets": (lambda *a: _statistics("targets", *a), C),
    "least_squares class_grams": (lambda *a: _statistics("class_grams", *a), C**2),
    "first_order gradient": (lambda *a: _head("softmax", 0.0, *a), C),
    "first_order gradient with bias": (lambda *a: _head("softmax", "learned", *a), C),
    "first_order gradient at zero": (lambda *a: _head("softmax", "learned", *a, zero=True), C),
    "first_order gradient sigmoid": (lambda *a: _head("sigmoid", -10.0, *a), C),
    "first_order gradient automatic": (lambda *a: _head("softmax", 0.0, *a, clipping="automatic"), C),
    "normalisation_mean": (lambda *a: _normalised("mean", *a), C),
    "normalisation_square": (lambda *a: _normalised("square", *a), C),
    "newton gradient": (lambda *a: _newton("gradient", *a), math.sqrt(2) * C),
    "newton gradient sigmoid": (lambda *a: _newton("gradient", *a, loss="sigmoid"), math.sqrt(CLASSES) * C),
    "newton hessian": (lambda *a: _newton("hessian", *a), math.sqrt(4 / 27) * C**2),
    "newton hessian sigmoid": (lambda *a: _newton("hessian", *a, loss="sigmoid"), math.sqrt(CLASSES) / 4 * C**2),
    "newton hessian shared": (lambda *a: _newton("shared", *a), (1 - 1 / CLASSES) * C**2),
    "newton hessian at zero": (lambda *a: _newton("at zero", *a), (1 - 1 / CLASSES) * C**2),
    "feature_covariance mean": (lambda *a: _covariance("mean", *a), 1.0),
    "feature_covariance gram": (lambda *a: _covariance("gram", *a), 1.0),
    "feature_covariance gram of moved records": (lambda *a: _covariance("moved", *a), 1.0),
    "feature_covariance gradient": (lambda *a: _covariance("gradient", *a), C),
    "feature_covariance targets": (_targets, 1.0),
    "iterated_sgd gradient": (_iterated, math.sqrt(2) * C),
    "kernel_mean class_sums": (_kernel, 1.0),
}


def problem_of(n: int, dim: int, secure: bool = True) -> Problem:
    """A noised problem of n records; its budget is never calibrated."""
    return Problem(n, (dim,), CLASSES, Budget("1", 1e-9), secure=secure)


def rows_of(pattern: str, n: int, dim: int) -> np.ndarray:
    """(n, dim) float32 records: "equal", "half and half" (of period two) or "random" positive ones."""
    drawn = np.random.default_rng(3)
    if pattern == "random":
        return drawn.uniform(1, 2, (n, dim)).astype(np.float32)
    x = np.empty((n, dim), np.float32)
    x[:] = drawn.uniform(1, 2, dim)
    if pattern == "half and half":
        x[1::2] = drawn.uniform(1, 2, dim)
    return x


def moved_by(name: str, x: np.ndarray, problem: Problem) -> float:
    """By how much the release moves when the first record is deleted, over what it may."""
    release, bound = RELEASES[name]
    y = np.zeros(len(x), np.int64)
    whole = release(x, y, problem).astype(np.float64)
    return float(np.linalg.norm(whole - release(x[1:], y[1:], problem).astype(np.float64))) / bound
