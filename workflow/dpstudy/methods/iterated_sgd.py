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
from typing import ClassVar, Literal

import numpy as np

from dpstudy.core.arrays import add_scaled, place_of
from dpstudy.core.errors import StudyError
from dpstudy.methods import private_normalisation
from dpstudy.methods.checks import finite
from dpstudy.methods.clipped_sum import ClippedSum
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
from dpstudy.schema.hyperparameters import Hyperparameters, setting

GRADIENT = "gradient"
ROUNDED = (
    "Steps are contractions but for rounding: in float32 one took two iterates further apart by up to 5e-6 of what one "
    "record moves them, in what was tried, and over many steps this adds up."
)


ENTRIES = {  # properties that the workflow's rules read (docs/add-a-method.md)
    "x-reads": "features",
    "x-beyond-target": {"order": "public"},  # these entries certify a larger epsilon than the target
    "x-curve": False,  # iterates before the last must stay hidden
    "x-one-label": {"where": [{}], "instead": "use first_order with loss: sigmoid"},
}


@dataclass(frozen=True)
class Parameters(Hyperparameters):
    """Hyper-parameters of noisy SGD that releases only the last iterate."""

    learning_rate: float = setting(
        about="What averaged gradients are multiplied by; as applied, at most 4/clipping_norm^2.", above=0
    )
    clipping_norm: float = setting(
        about="Bound on a record's feature norm, behind the normalisation if any; gradients are not clipped.",
        above=0,
    )
    batch_size: int = setting(about="B.", least=1)
    epochs: int = setting(about="K, whole passes over the batches.", least=1)
    learning_rate_batch: int | None = setting(
        None,
        "The learning rate is per this many records: it is multiplied by batch_size/learning_rate_batch.",
        least=1,
    )
    radius: float | None = setting(
        None, "The weights are projected onto a ball of this Frobenius norm after each step.", above=0
    )
    order: Literal["public", "secret"] = setting(
        "public",
        "public: the order of batches may be known, as in the papers; protected_share of the records have the target, "
        "and the epsilon of the worst one is certified. secret: the random order is hidden too, and every record has "
        "the target.",
    )
    protected_share: float = setting(0.99, "Of the records that have the target, with a public order.", above=0, most=1)
    normalisation: Normalisation | None = setting(
        None, "Private data normalisation first (tramer2021 Algorithm 2).", without=("sampling_rate",)
    )

    METHOD: ClassVar[str] = "iterated_sgd"

    def __post_init__(self):
        super().__post_init__()
        private_normalisation.check_whole(self.METHOD, self.normalisation)

    @property
    def step_size(self) -> float:
        """eta, the learning rate as applied."""
        return self.learning_rate * (self.batch_size / self.learning_rate_batch if self.learning_rate_batch else 1)

    def clipped_rows(self, problem: Problem) -> ClippedSum:
        """The clipped records, from which gradients are computed."""
        return problem.sum_of(self.clipping_norm)

    def lipschitz(self, problem: Problem) -> float:
        """L, the largest gradient norm of a clipped record (the Lipschitz constant)."""
        return self.clipped_rows(problem).times(math.sqrt(1 + problem.positives)).sensitivity()


@dataclass(frozen=True)
class TrainingSet:
    """Private records, their positions in the order of a pass, and the private sums for the normalisation (or None)."""

    records: Records
    units: Units
    sums: ChannelSums | None


def plan(parameters: Parameters, problem: Problem) -> Plan:
    """Calibrate the gradient noise to the budget that the normalisation leaves.

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
    rounded = (ROUNDED,) if problem.secure else ()
    return Plan(events_at(scale), {GRADIENT: scale * bound}, facts | {"noise_multiplier": scale}, rounded)


def prepare(batches, parameters: Parameters, problem: Problem) -> TrainingSet:
    """Read (features, labels) batches so that mini-batches can be drawn."""
    records = Records.of(batches, problem, picked=True)
    units = units_of(batches, records.rows, problem, needed=True, placed=True)
    return TrainingSet(records, units, private_normalisation.shared_sums(records, parameters.normalisation, problem))


def prepared_by(parameters: Parameters) -> None:
    """None, since `prepare` depends on no hyper-parameter that is searched: a normalisation has one setting."""


def fit(data: TrainingSet, parameters: Parameters, problem: Problem, plan: Plan, source: NoiseSource) -> Fit:
    """Train one seed and release the last iterate; there is no curve, since the other iterates must stay hidden.

    The order deals all n slots: those of records that de-duplication dropped stay empty, and dropping one moves no
    other.
    """
    center, scale = None, None
    if parameters.normalisation:
        if data.sums is None:
            raise ValueError("iterated_sgd: the sums of its normalisation are made with the training set, not sampled")
        center, scale = private_normalisation.release(data.sums, parameters.normalisation, problem, source)
    rows = parameters.clipped_rows(problem)
    records = data.records.mapped(RowMap(center=center, scale=scale, clip=rows.clip))
    head = Head("softmax", 0.0, math.inf)  # no clipping norm: gradients are bounded because records are clipped
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
    """Project weights, in place, onto the ball of Frobenius norm `radius`."""
    norm = float(place_of(weights).xp.linalg.vector_norm(weights))
    if norm > radius:
        weights *= radius / norm
