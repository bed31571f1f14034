"""The public facts that every method gets, and the plan and trained model that it returns."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.methods.clipped_sum import ClippedSum
from dpstudy.methods.exact import CAPACITY
from dpstudy.models import Model
from dpstudy.models.linear import LinearModel
from dpstudy.privacy.accounting import certify
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.events import Event, unproved
from dpstudy.privacy.printed import upper_bound

_ROUNDING = 1e-9
SANITISE = ("full", "clip", "none")


@dataclass(frozen=True)
class Problem:
    """Public facts about one cell; no number here may depend on private records beyond the public n.

    Attributes:
        n: public number of training units.
        shape: layout of one record's features, (d,) or (K, H, W).
        classes: m.
        positives: the most positive labels a record may have (k).
        budget: target epsilon, delta, accounting.
        unit_records: the most records that a unit of privacy has: 1, or where units are persons maybe more.
        secure: the noise is the operating system's, so that sums must be exact (exact.py).
        averaged: whether the records of a unit are averaged (averaging.py): together they count as one.
        class_weights: (m + 1,) what a record of each class counts for, 1 at most, and last one that bears no label;
            empty: 1. Public numbers, which change no sensitivity.
        several: whether labels are zeros and ones, so that a record may bear several or none; None: where k is above 1.
        sanitise: "full"; "clip" (clips, adds no noise) and "none" (neither) give no guarantee. An infinite
            target turns "full" into "none".
    """

    n: int
    shape: tuple[int, ...]
    classes: int
    budget: Budget
    positives: int = 1
    sanitise: str = "full"
    unit_records: int = 1
    secure: bool = field(default=False, repr=False)  # not in the repr, which keys the noise of `dpstudy.fit`
    several: bool | None = field(default=None, repr=False)
    averaged: bool = field(default=False, repr=False)
    class_weights: tuple[float, ...] = field(default=(), repr=False)

    def __post_init__(self):
        if self.unit_records < 1:
            raise StudyError(f"per_subject {self.unit_records!r}: must be at least 1")
        if self.class_weights and not (
            len(self.class_weights) == self.classes + 1 and all(0 < one <= 1 for one in self.class_weights)
        ):
            raise StudyError(f"class_weights: must be above 0 and at most 1, one for each of {self.classes} classes")
        if self.sanitise not in SANITISE:
            raise StudyError(f"sanitise {self.sanitise!r}: one of {', '.join(SANITISE)}")
        if self.sanitise != "full" and self.budget.private:
            raise StudyError(
                f"sanitise: {self.sanitise} gives no guarantee, so epsilon must be 'inf', not {self.budget.epsilon!r}"
            )

    @property
    def dim(self) -> int:
        """d, the number of features."""
        return math.prod(self.shape)

    @property
    def unit_bound(self) -> int:
        """How many times a record's contribution bound one unit can move a sum by."""
        return 1 if self.averaged else self.unit_records

    def sum_of(self, norm: float) -> ClippedSum:
        """The private sum of contributions that are clipped to `norm`."""
        return ClippedSum(norm, self.unit_bound, self.clipped)

    @property
    def exclusive(self) -> bool:
        """Whether every record bears exactly one label."""
        return not (self.positives > 1 if self.several is None else self.several)

    @property
    def noised(self) -> bool:
        """Whether noise is added."""
        return self.sanitise == "full" and self.budget.private

    @property
    def capacity(self) -> int | None:
        """The number of records that exact sums must have room for; None where sums may be float32.

        These are the records of the public n units, and of one more.

        Raises:
            StudyError: there are more than exact sums can have.
        """
        if not (self.secure and self.noised):
            return None
        most = (self.n + 1) * self.unit_records
        if most > CAPACITY:
            raise StudyError(
                f"noise: secure: sums of {most:,} records would not be exact, and sensitivities not what ledgers say; "
                f"n times per_subject may be {CAPACITY - 1:,} at most"
            )
        return most

    @property
    def exact(self) -> bool:
        """Whether sums over private records must be exact (exact.py)."""
        return self.capacity is not None

    @property
    def clipped(self) -> bool:
        """Whether contributions are clipped."""
        return self.noised or self.sanitise == "clip"


def check_softmax(method: str, problem: Problem, remedy: str) -> None:
    """Refuse the softmax loss where a record may have several labels or none.

    Its scores are those of one class against the others, and of a record without a label it has no minimum.

    Raises:
        StudyError: the method, and the remedy.
    """
    if not problem.exclusive:
        raise StudyError(f"{method}: the softmax loss takes one label a record; {remedy}")


@dataclass(frozen=True)
class Plan:
    """The releases of a method and their noise, decided before any private record is read.

    Attributes:
        events: every noisy release of one seed; empty without noise.
        noise: name of a quantity -> standard deviation of its noise, in the units of the released sum.
        facts: hyper-parameters that follow from others (steps, noise multiplier), for metrics.json.
        not_accounted: what the events presume and nobody has proved, a sentence each, for the ledger.
    """

    events: tuple[Event, ...]
    noise: Mapping[str, float]
    facts: Mapping[str, float | int | str] = field(default_factory=dict)
    not_accounted: tuple[str, ...] = ()

    def __str__(self) -> str:
        """The plan as text for a log.

        >>> print(Plan((), {}, {"steps": 4688, "learning_rate_applied": 0.5}))
        releases nothing with noise; steps 4688, learning_rate_applied 0.5
        """
        facts = [
            f"{name} {fact:.6g}" if isinstance(fact, float) else f"{name} {fact}" for name, fact in self.facts.items()
        ]
        events = [str(event) for event in self.events] or ["releases nothing with noise"]
        return "; ".join([*events, ", ".join(facts)] if facts else events)


@dataclass(frozen=True)
class Fit:
    """A trained model, and for stepped methods the public training curve: (step, split, metric, value) rows."""

    model: Model
    curve: Sequence[tuple[int, str, str, float]] = ()


def check_plan(plan: object, problem: Problem, method: str, beyond_target: bool = False) -> None:
    """Refuse a plan that breaks the rules for what a method's `plan` returns.

    Args:
        beyond_target: the method certifies more than its target by its nature (`x-beyond-target` of its schema).

    Raises:
        StudyError: it is no Plan, or its events are none; or releases nothing where the budget is finite: a model of
            private records that cost nothing would have no guarantee; or is certified for more than the budget.
    """
    if not isinstance(plan, Plan):
        raise StudyError(
            f"method {method!r}: its `plan` gave back {type(plan).__name__}, must be dpstudy.methods.problem.Plan"
        )
    if not isinstance(plan.events, tuple) or not all(isinstance(event, Event) for event in plan.events):
        raise StudyError(
            f"method {method!r}: the events of its `plan` are {plan.events!r:.60}; must be a tuple of "
            "dpstudy.privacy.events.Event"
        )
    if problem.noised and not plan.events:
        raise StudyError(
            f"method {method!r}: its `plan` has no event at epsilon {problem.budget.epsilon}, so nothing would account "
            "for what the model learns from private records; give each noisy release an Event"
        )
    if not problem.noised or beyond_target or problem.budget.accounting != "certified" or unproved(plan.events):
        return
    epsilon, budget = certify(plan.events, problem.budget.delta).epsilon, problem.budget
    if epsilon > budget.target * (1 + _ROUNDING):
        raise StudyError(
            f"method {method!r}: its `plan` is certified for epsilon {upper_bound(epsilon)} at delta "
            f"{upper_bound(budget.delta)}, beyond the target {budget.epsilon}; calibrate its noise multiplier "
            "(dpstudy.privacy.calibration)"
        )


def check_fit(fitted: object, method: str, problem: Problem) -> None:
    """Refuse a result that breaks the rules for what a method's `fit` returns.

    Raises:
        StudyError: it is no Fit, its model is none or, where it is linear, has other shapes than (m, d) and (m,), or a
            number of it is NaN or infinite.
    """
    if not isinstance(fitted, Fit):
        raise StudyError(
            f"method {method!r}: its `fit` gave back {type(fitted).__name__}, must be dpstudy.methods.problem.Fit"
        )
    model = fitted.model
    if lacking := [part for part in ("scores", "parameters", "finite", "save") if not hasattr(model, part)]:
        raise StudyError(
            f"method {method!r}: the model of its `fit`, {type(model).__name__}, has no {' and no '.join(lacking)} "
            "(dpstudy/models/__init__.py)"
        )
    if isinstance(model, LinearModel):
        shapes, wanted = (
            (np.shape(model.weights), np.shape(model.bias)),
            ((problem.classes, problem.dim), (problem.classes,)),
        )
        if shapes != wanted:
            raise StudyError(
                f"method {method!r}: its `fit` gave back weights {shapes[0]} and bias {shapes[1]}; must be {wanted[0]} "
                f"and {wanted[1]}: (classes, features) and (classes,)"
            )
    if not model.finite:
        raise StudyError(f"method {method!r}: its model has weights that are NaN or infinite")
