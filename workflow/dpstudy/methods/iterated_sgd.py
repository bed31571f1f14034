"""Noisy SGD for a linear softmax classifier, private by iteration: only the last iterate is ever published.

Feldman, Mironov, Talwar and Thakurta 2018; tramer2021, D.3. Records are clipped to norm C, gradients are not. The
n public slots are dealt at random into ceil(n/B) batches, which are visited in that order in every epoch; a step is

    w <- P(w - (eta/B) (sum of the batch's gradients + Z)),    Z ~ N(0, (s L)^2 I).

What privacy/iteration.py needs of the losses, x a record of norm at most C, p its softmax scores, y its 0/1 labels, of
which at most k are 1: the loss logsumexp(W x) - y.W x is convex in W, with gradient (p - y) x^T and Hessian
(diag(p) - p p^T) kron x x^T.
- L = sqrt(1 + k) C: |p - y|^2 is convex in p, so largest at a vertex e_i, where it is at most 1 + k.
- beta = C^2/2: the absolute values of row i of diag(p) - p p^T add up to 2 p_i (1 - p_i) <= 1/2, which bounds its
  eigenvalues (Gershgorin).
A batch has at most B records and the step divides by B, so that eta <= 2/beta = 4/C^2 makes it a contraction; momentum
would not be one. There is no bias: a constant feature would share C with the record, and without one the classes of a
model's scores are those of clipped records too. A record that is not finite contributes zero.
"""

import math
from dataclasses import dataclass

import numpy as np

from dpstudy.core.arrays import add_scaled, place_of
from dpstudy.core.errors import StudyError
from dpstudy.methods import private_normalisation
from dpstudy.methods.checks import count, finite, one_of, positive
from dpstudy.methods.gradients import Head, clipped_sum
from dpstudy.methods.private_normalisation import ChannelSums, Normalisation
from dpstudy.methods.problem import Fit, Plan, Problem, check_softmax
from dpstudy.methods.records import Records
from dpstudy.methods.releases import released_array
from dpstudy.methods.row_map import RowMap
from dpstudy.methods.units import Units, single_records, units_of
from dpstudy.privacy.calibration import calibrate
from dpstudy.privacy.events import ITERATED, Event
from dpstudy.privacy.iteration import for_a_share
from dpstudy.privacy.noise import NoiseSource

GRADIENT = "gradient"
ORDERS = ("public", "secret")


@dataclass(frozen=True)
class Parameters:
    """Hyper-parameters.

    Attributes:
        learning_rate: eta of the averaged gradient; times batch_size/learning_rate_batch where that is given.
        clipping_norm: C, bound on the norm of a record (behind the normalisation, if there is one).
        batch_size: B.
        epochs: K, whole passes over the batches.
        radius: the weights are projected onto a ball of this Frobenius norm after each step; None: they are not.
        order: "public" as in the papers: the noise is for the best protected `protected_share` of the records, and the
            certified epsilon is that of the worst one. "secret": which batch a record is in is part of what nobody
            learns, and all records have the target.
        protected_share: of the records that have the target, with a public order.
        normalisation: a private normalisation of the features first, or None.
    """

    learning_rate: float
    clipping_norm: float
    batch_size: int
    epochs: int
    learning_rate_batch: int | None = None
    radius: float | None = None
    order: str = "public"
    protected_share: float = 0.99
    normalisation: Normalisation | None = None

    def __post_init__(self):
        if isinstance(self.normalisation, dict):
            object.__setattr__(self, "normalisation", Normalisation(**self.normalisation))
        private_normalisation.check_whole("iterated_sgd", self.normalisation)
        one_of("iterated_sgd", "order", self.order, ORDERS)
        positive("iterated_sgd", learning_rate=self.learning_rate, clipping_norm=self.clipping_norm)
        positive("iterated_sgd", protected_share=self.protected_share)
        count("iterated_sgd", batch_size=self.batch_size, epochs=self.epochs)
        if self.radius is not None:
            positive("iterated_sgd", radius=self.radius)
        if self.protected_share > 1:
            raise StudyError(f"iterated_sgd: protected_share {self.protected_share!r}: must be at most 1")

    @property
    def step_size(self) -> float:
        """eta as applied."""
        return self.learning_rate * (self.batch_size / self.learning_rate_batch if self.learning_rate_batch else 1)

    def lipschitz(self, problem: Problem) -> float:
        """L, the longest gradient of a clipped record."""
        return math.sqrt(1 + problem.positives) * self.clipping_norm


@dataclass(frozen=True)
class TrainingSet:
    """Private records, their places in the order, and their private sums for the normalisation (or None)."""

    records: Records
    units: Units
    sums: ChannelSums | None


def plan(parameters: Parameters, problem: Problem) -> Plan:
    """Calibrate the gradient noise to what the normalisation leaves of the budget.

    Raises:
        StudyError: a step would not be a contraction, the batch exceeds the data set, a secret order with a paper's
            accounting, or the normalisation alone costs more than the budget.
    """
    if parameters.batch_size > problem.n:
        raise StudyError(f"iterated_sgd: batch_size {parameters.batch_size} exceeds the {problem.n} training records")
    rate, batches = parameters.batch_size / problem.n, math.ceil(problem.n / parameters.batch_size)
    steps = parameters.epochs * batches
    facts = {"steps": steps, "sampling_rate": rate, "learning_rate_applied": parameters.step_size}
    single_records("iterated_sgd", problem, "iteration")
    check_softmax("iterated_sgd", problem, "use first_order with loss: sigmoid for several")
    if not problem.noised:
        return Plan((), {GRADIENT: 0.0}, facts)
    largest = 4 / parameters.clipping_norm**2
    if parameters.step_size > largest:
        raise StudyError(
            f"iterated_sgd: a learning rate of {parameters.step_size:g} (as applied) is above 4/clipping_norm^2 = "
            f"{largest:g}: steps would not be contractions, and without those iteration amplifies nothing"
        )
    fixed = private_normalisation.events(parameters.normalisation, problem) if parameters.normalisation else ()
    bound, secret = parameters.lipschitz(problem), parameters.order == "secret"
    if secret and problem.budget.accounting != "certified":
        raise StudyError(f"iterated_sgd: accounting {problem.budget.accounting!r} knows no secret order; use certified")

    def events_at(scale: float) -> tuple[Event, ...]:
        return (*fixed, Event(GRADIENT, ITERATED, scale, bound, steps, "shuffle", rate, parameters.epochs, secret))

    if secret:
        scale = calibrate(events_at, problem.budget)
    else:
        scale = calibrate(lambda scale: for_a_share(events_at(scale), parameters.protected_share), problem.budget)
    return Plan(events_at(scale), {GRADIENT: scale * bound}, facts | {"noise_multiplier": scale})


def prepare(batches, parameters: Parameters, problem: Problem) -> TrainingSet:
    """Take (features, labels) batches in, to pick batches from."""
    records = Records.of(batches, problem, picked=True)
    units = units_of(batches, records.rows, problem, needed=True, placed=True)
    return TrainingSet(records, units, private_normalisation.shared_sums(records, parameters.normalisation, problem))


def prepared_by(parameters: Parameters) -> None:
    """Nothing that is searched: records are held as they came, and a normalisation has one setting."""


def fit(data: TrainingSet, parameters: Parameters, problem: Problem, plan: Plan, source: NoiseSource) -> Fit:
    """Train one seed and release the last iterate; there is no curve, since the others must stay hidden.

    The order deals all n slots: those of records that de-duplication dropped stay empty, and dropping one moves no
    other.
    """
    center, scale = None, None
    if parameters.normalisation:
        if data.sums is None:
            raise ValueError("iterated_sgd: the sums of its normalisation are made with the training set, not sampled")
        center, scale = private_normalisation.release(data.sums, parameters.normalisation, problem, source)
    clip = parameters.clipping_norm if problem.clipped else math.inf
    records = data.records.mapped(RowMap(center=center, scale=scale, clip=clip))
    head = Head("softmax", 0.0, math.inf)  # a gradient is bounded because its record is
    weights = head.start(records)
    order = source.sampling("order").permutation(problem.n)
    slots = np.split(order, range(parameters.batch_size, problem.n, parameters.batch_size))
    for step in range(1, parameters.epochs * len(slots) + 1):
        gradient = clipped_sum(records, weights, head, data.units.at(slots[(step - 1) % len(slots)]))
        if plan.events:
            gradient = released_array(source, GRADIENT, gradient, plan.noise[GRADIENT], step)
        add_scaled(weights, gradient, -parameters.step_size / parameters.batch_size)
        if parameters.radius is not None:
            _project(weights, parameters.radius)
    return Fit(finite("iterated_sgd", head.model(weights, "iterated_sgd", center, scale)))


def _project(weights, radius: float) -> None:
    """In place, onto the ball of this Frobenius norm."""
    norm = float(place_of(weights).xp.linalg.vector_norm(weights))
    if norm > radius:
        weights *= radius / norm
