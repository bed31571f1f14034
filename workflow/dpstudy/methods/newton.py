"""DP-Newton: T steps of a linear head with noisy gradients and noisy class-diagonal Hessians.

Features are clipped to norm C, which bounds both without a per-example Hessian. W starts at zero; there is no bias.

`published` is mehta2023 Algorithm 2, with the sum over classes of sigmoid losses. A record changes the gradient of each
class by at most C (|sigmoid - y| <= 1) and its Hessian by at most C^2/4 in Frobenius norm; over m classes together that
is sqrt(m) C and sqrt(m) C^2/4. Both are released T times with the same noise multiplier s: mu^2 = 2T/s^2, which is
rho = T/s^2 (Theorem 2.1).

`softmax` has sensitivities that do not grow with m. For probabilities p and one label y:
    |p - y|^2 <= (1 - p_y)^2 + (1 - p_y)^2 <= 2: the gradients of all classes change by at most sqrt(2) C together.
    t (1 - t)^2 <= 4/27 on [0, 1], so sum_j (p_j (1 - p_j))^2 <= (4/27) sum_j p_j = 4/27, reached by three equal
    classes: all blocks together change by at most sqrt(4/27) C^2. Of two classes both terms are (p (1 - p))^2 <= 1/16:
    by at most sqrt(1/8) C^2.
    sum_j p_j (1 - p_j) = 1 - |p|^2 <= 1 - 1/m: the sum of all blocks, shared by all classes, changes by at most
    (1 - 1/m) C^2.
The first step is at zero weights, whatever the records: every p_j is 1/m. There
    |p - y|^2 = (1 - 1/m)^2 + (m - 1)/m^2 = 1 - 1/m, or |p|^2 = 1/m <= 1 - 1/m of a record without a label,
    sum_j (p_j (1 - p_j))^2 = (1 - 1/m)^2/m,    sum_j p_j (1 - p_j) = 1 - 1/m,
which any record of norm C reaches in all at once: the first step is charged for these, and nothing can be charged for
less. The later ones are at weights that depend on the records, where the bounds above hold for any. All steps have the
same noise.
A record's full Hessian is (D - A) x x^T, with D the diagonal p_j (1 - p_j) and A the off-diagonal p_j p_k. D + A is
diagonally dominant, so D - A <= 2 D: the full Hessian is at most twice its block diagonal, hence steps of 1/2. A share
of mu^2 is spent on the Hessians, and the ridge comes from their known noise. What classes share, divided by m, has far
less noise but no such bound: it understates the curvature of classes that are confused with each other, so several
steps over many classes want a smaller learning rate.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import numpy as np

from dpstudy.core.arrays import place_of, to_numpy
from dpstudy.core.errors import StudyError
from dpstudy.methods.checks import finite
from dpstudy.methods.clipped_sum import ClippedSum
from dpstudy.methods.gradients import Head, clipped_sum
from dpstudy.methods.grams import gram
from dpstudy.methods.hessians import class_hessians, flat_hessian, shared_hessian
from dpstudy.methods.problem import Fit, Plan, Problem, check_softmax
from dpstudy.methods.records import Records
from dpstudy.methods.row_map import RowMap
from dpstudy.methods.scaled_plan import scaled_plan
from dpstudy.methods.spectral import solve_floored, solve_ridge
from dpstudy.models.linear import LinearModel
from dpstudy.privacy.events import Event
from dpstudy.privacy.noise import NoiseSource
from dpstudy.schema.hyperparameters import Hyperparameters, setting

GRADIENT, HESSIAN = "gradient", "hessian"
_BLOCK_BYTES = 1 << 31  # of the Hessians that are held at once
_SMALLEST_RIDGE = 1e-6  # relative to the mean eigenvalue
_METHOD = "newton"


ENTRIES = {  # properties that the workflow's rules read (docs/add-a-method.md)
    "x-reads": "features",
    "x-curve": True,
    "x-one-label": {"where": [{"variant": "softmax"}], "instead": "set variant: published"},
    "x-averages": True,  # supports `contributions: average`
}


@dataclass(frozen=True)
class Parameters(Hyperparameters):
    """Hyper-parameters of DP-Newton."""

    variant: Literal["softmax", "published"] = setting("softmax")
    steps: int = setting(1, "T, noisy steps.", least=1)
    clipping_norm: float = setting(1.0, "C, bound on a record's feature norm.", above=0)
    learning_rate: float = setting(0.5, "eta.", above=0, search={"low": 1e-3, "high": 100.0})
    # Never less than a millionth of the mean eigenvalue.
    ridge: float | Literal["known-noise"] = setting(
        "known-noise",
        "Added to the Hessian divided by n; known-noise: half the spectral norm of its noise.",
        above=0,
        search={"low": 1e-9, "high": 1e-3},
    )
    hessian_share: float = setting(0.3, "Share of mu^2 spent on the Hessians (softmax).", above=0, below=1)
    preconditioner: Literal["per-class", "shared"] = setting(
        "per-class", "One Hessian a class, or one for all (softmax)."
    )
    floor: bool = setting(True, "Raise negative eigenvalues of a noisy Hessian to zero.")
    # changes no result, so it is not part of the text that keys the noise of `fit`
    curve_points: int = setting(5, "How often along training the model is scored.", least=1, keyed=False)

    METHOD: ClassVar[str] = _METHOD

    def __post_init__(self):
        super().__post_init__()
        if self.preconditioner == "shared" and self.variant == "published":
            raise StudyError(f"{self.METHOD}: preconditioner 'shared' goes with the variant 'softmax' only")

    @property
    def loss(self) -> str:
        """The loss of the head."""
        return "sigmoid" if self.variant == "published" else "softmax"


@dataclass(frozen=True)
class TrainingSet:
    """Private records with clipped features, and sums at zero weights that every seed and trial shares."""

    records: Records
    sums: dict = field(default_factory=dict)


def prepared_by(parameters: Parameters) -> tuple:
    """The hyper-parameters on which `prepare` depends."""
    return (parameters.clipping_norm,)


def plan(parameters: Parameters, problem: Problem) -> Plan:
    """Calibrate the noise to the budget; see the module's proof for the sensitivities."""
    if parameters.variant == "softmax":
        check_softmax(_METHOD, problem, "use variant: published for several")
    if parameters.variant == "softmax" and problem.classes < 2:
        raise StudyError(f"{_METHOD}: the softmax loss needs two classes at least")
    facts = {"learning_rate_applied": parameters.learning_rate}
    if not problem.noised:
        return Plan((), {GRADIENT: 0.0, HESSIAN: 0.0}, facts)
    # the noise multipliers are of the later steps, where there are some: the smaller one
    return scaled_plan(_unit_events(parameters, problem), problem.budget, facts)


def _unit_events(parameters: Parameters, problem: Problem) -> tuple[Event, ...]:
    """The events before calibration: with a noise multiplier of 1 each (published), or a total mu of 1 (softmax)."""
    rows, steps, classes = _rows(parameters, problem), parameters.steps, problem.classes
    root, products = math.sqrt(classes), rows.products
    if parameters.variant == "published":
        return (
            rows.times(root).event(GRADIENT, 1.0, steps),
            products.times(root / 4).event(HESSIAN, 1.0, steps),
        )
    part = parameters.hessian_share
    at_zero, anywhere = 1 - 1 / classes, 1 - 1 / classes
    if parameters.preconditioner == "per-class":
        at_zero, anywhere = (1 - 1 / classes) / root, math.sqrt(1 / 8 if classes == 2 else 4 / 27)
    return (
        *_steps_of(GRADIENT, rows.times(math.sqrt(1 - 1 / classes)), rows.times(math.sqrt(2)), steps, 1 - part),
        *_steps_of(HESSIAN, products.times(at_zero), products.times(anywhere), steps, part),
    )


def _rows(parameters: Parameters, problem: Problem) -> ClippedSum:
    """The clipped records, whose products with bounded numbers make up gradients and Hessians."""
    return problem.sum_of(parameters.clipping_norm)


def _steps_of(name: str, first: ClippedSum, later: ClippedSum, steps: int, square: float) -> Iterator[Event]:
    """The events of a sum in each of `steps` steps, with equal noise, which compose to a mu^2 of `square`."""
    std = math.sqrt((first.sensitivity() ** 2 + (steps - 1) * later.sensitivity() ** 2) / square)
    yield first.event(name, std / first.sensitivity())
    if steps > 1:
        yield later.event(name, std / later.sensitivity(), steps - 1)


def spent(plan: Plan, step: int) -> tuple[Event, ...]:
    """The events of the first `step` steps, for the epsilon of the training curve."""
    events, left = [], {GRADIENT: step, HESSIAN: step}
    for event in plan.events:  # of each name in the order of the steps
        made = min(event.count, left[event.name])
        left[event.name] -= made
        events += [replace(event, count=made)] if made else []
    return tuple(events)


def prepare(batches, parameters: Parameters, problem: Problem) -> TrainingSet:
    """Read (features, labels) batches; non-finite records become zero and take no part."""
    records = Records.of(batches, problem)
    return TrainingSet(records.mapped(RowMap(clip=_rows(parameters, problem).clip)))


def fit(
    data: TrainingSet,
    parameters: Parameters,
    problem: Problem,
    plan: Plan,
    source: NoiseSource,
    monitor: Callable[[int, LinearModel], None] | None = None,
) -> Fit:
    """Train one seed. `monitor(step, model)` is called `curve_points` times with released models."""
    head = Head(parameters.loss, 0.0, math.inf, mean=False)
    weights = head.start(data.records)
    stops = {
        round(parameters.steps * point / parameters.curve_points) for point in range(1, parameters.curve_points + 1)
    }
    for step in range(1, parameters.steps + 1):
        gradient = _gradient(data, weights, head, step)
        if plan.events:
            gradient = source.released(GRADIENT, gradient, plan.noise[GRADIENT], step)
        moved = to_numpy(weights).copy()
        for index, hessian in _noisy_hessians(data, weights, parameters, plan, source, step):
            solver = solve_floored if parameters.floor else solve_ridge
            hessian = hessian / problem.n
            smallest = _SMALLEST_RIDGE * max(float(np.trace(hessian)) / len(hessian), 1e-12)
            ridge = max(_ridge(parameters, problem, plan), smallest)
            moved[index] -= parameters.learning_rate * solver(hessian, ridge, gradient[index] / problem.n)
        weights = place_of(weights).array(moved)
        finite(_METHOD, head.model(weights, _METHOD))
        if monitor and step in stops:
            monitor(step, head.model(weights, _METHOD))
    return Fit(head.model(weights, _METHOD))


def _ridge(parameters: Parameters, problem: Problem, plan: Plan) -> float:
    if parameters.ridge != "known-noise":
        return parameters.ridge
    dim = problem.dim
    std = plan.noise[HESSIAN] / (problem.classes if parameters.preconditioner == "shared" else 1)
    return (0.5 if parameters.floor else 1.5) * math.sqrt(2 * dim) * std / problem.n


def _gradient(data: TrainingSet, weights, head: Head, step: int) -> np.ndarray:
    """(m, d) private gradient sums of all classes; a record's sigmoid losses are summed over classes."""
    if step == 1 and head in data.sums:
        return data.sums[head]
    gradient = to_numpy(clipped_sum(data.records, weights, head))
    if step == 1:
        data.sums[head] = gradient
    return gradient


def _noisy_hessians(data: TrainingSet, weights, parameters: Parameters, plan: Plan, source: NoiseSource, step: int):
    """Yield (classes, their released (d, d) Hessian sum), holding one block of classes at a time."""
    dim, classes = data.records.dim, data.records.classes
    at_zero = 0.25 if parameters.loss == "sigmoid" else (1 - 1 / classes) / classes
    if step == 1 and not plan.events:  # the same for all: solved once
        yield slice(0, classes), _at_zero(data, at_zero)
        return

    def noised(matrix: np.ndarray, tensor: str) -> np.ndarray:
        if not plan.events:
            return matrix
        return source.released(HESSIAN, matrix, plan.noise[HESSIAN], step, tensor, symmetric=True)

    if parameters.preconditioner == "shared":
        private = _at_zero(data, 1 - 1 / classes) if step == 1 else shared_hessian(data.records, weights)
        yield slice(0, classes), noised(private, "") / classes
        return
    size = max(1, _BLOCK_BYTES // (12 * dim * dim))  # sums in float64, and what they are rounded to
    for start in range(0, classes, size):
        part = range(start, min(classes, start + size))
        block: Iterable[np.ndarray]
        if step == 1:
            block = [_at_zero(data, at_zero)] * len(part)
        else:
            block = class_hessians(data.records, weights, parameters.loss, part)
        for index, private in zip(part, block, strict=True):
            yield slice(index, index + 1), noised(private, str(index))


def _at_zero(data: TrainingSet, curvature: float) -> np.ndarray:
    """The private Hessian sum at zero weights, where every record has one curvature: one Gram matrix for all classes.

    An exact one is not scaled afterwards, which would round it.
    """
    key = (HESSIAN, curvature if data.records.capacity else None)
    if key not in data.sums:
        data.sums[key] = flat_hessian(data.records, curvature) if data.records.capacity else gram(data.records)
    return data.sums[key] if data.records.capacity else np.float32(curvature) * data.sums[key]
