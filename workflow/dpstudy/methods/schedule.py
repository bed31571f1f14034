"""The noisy steps of first-order methods: their hyper-parameters, their number, and their noise."""

import math
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import ClassVar, Literal

from dpstudy.core.errors import StudyError
from dpstudy.methods import private_normalisation
from dpstudy.methods.clipped_sum import ClippedSum
from dpstudy.methods.optimisers import OPTIMISERS
from dpstudy.methods.private_normalisation import Normalisation
from dpstudy.methods.problem import Plan, Problem, check_softmax
from dpstudy.methods.units import single_records
from dpstudy.privacy.accounting import certify
from dpstudy.privacy.calibration import affordable, calibrate
from dpstudy.privacy.events import TRUNCATED, Event
from dpstudy.privacy.printed import upper_bound
from dpstudy.schema.hyperparameters import Hyperparameters, setting

GRADIENT = "gradient"
LENGTH = {  # of a schedule: the keywords of a schema that say which of its keys are given
    "oneOf": [
        {"required": ["epochs"]},
        {"required": ["steps"]},
        {"required": ["noise_multiplier"], "not": {"required": ["steps"]}},
    ]
}


@dataclass(frozen=True)
class Schedule(Hyperparameters):
    """Hyper-parameters of first-order training."""

    learning_rate: float = setting(
        about="What averaged gradients are multiplied by.", above=0, search={"low": 0.01, "high": 10.0}
    )
    clipping_norm: float = setting(about="C, bound on a record's gradient.", above=0)
    optimiser: str = setting("momentum", choices=OPTIMISERS)
    learning_rate_batch: int | None = setting(
        None,
        "The learning rate is per this many records: it is multiplied by batch_size/learning_rate_batch.",
        least=1,
    )
    batch_size: int | Literal["full"] = setting("full", "Expected records of a batch.", least=1)
    epochs: float | None = setting(None, "As many steps as go over the records so often.", above=0)
    steps: int | None = setting(None, "Noisy steps; the noise follows from epsilon.", least=1)
    noise_multiplier: float | None = setting(
        None,
        "In place of epochs and steps: as many steps as epsilon allows at this noise. Beside steps: both as given, if "
        "epsilon allows them.",
        above=0,
    )
    normalised: bool = setting(
        False,
        "Clipped gradients are divided by clipping_norm, so that the learning rate does not depend on it (de2022).",
    )
    momentum: float = setting(0.9, "Of momentum.", least=0, below=1)
    # Shuffling is a control: noise is calibrated as for Poisson sampling, and epsilon certified for shuffled batches.
    sampling: Literal["poisson", "shuffle"] = setting(
        "poisson", "How batches are drawn; shuffle certifies more than the target."
    )
    largest_batch: int | None = setting(
        None,
        "Of a Poisson batch with more records a random subset of this size is taken; the accounting covers it.",
        least=1,
    )
    normalisation: Normalisation | None = setting(None, "Private data normalisation first (tramer2021 Algorithm 2).")
    bands: int = setting(
        1,
        "Steps over which noise is correlated, so that each takes back noise of earlier ones (a banded matrix "
        "mechanism); a unit takes part in every bands-th step only. Not with secure noise, and without checkpoints; it "
        "holds the gradients of so many steps twice.",
        least=1,
        keyed=False,  # where it is 1: see __repr__
        filled=False,  # cells of versions that had none stay what they are
    )
    # changes no result, so it is not part of the text that keys the noise of `fit`
    curve_points: int = setting(5, "How often along training the model is scored.", least=1, keyed=False)

    METHOD: ClassVar[str] = ""
    LATER: ClassVar[tuple[str, ...]] = ("bands",)  # settings that earlier versions did not have

    def __repr__(self) -> str:
        """The text that keys the noise of `fit`; without later settings it is that of versions that had none."""
        shown = [each for each in fields(self) if each.repr]
        shown += [each for each in fields(self) if each.name in self.LATER and getattr(self, each.name) != each.default]
        return f"Parameters({', '.join(f'{each.name}={getattr(self, each.name)!r}' for each in shown)})"

    def __post_init__(self):
        super().__post_init__()
        method = self.METHOD
        given = {name for name in ("epochs", "steps", "noise_multiplier") if getattr(self, name) is not None}
        if len(given) != 1 and given != {"steps", "noise_multiplier"}:
            raise StudyError(f"{method}: give one of `epochs`, `steps` and `noise_multiplier`, or the last two")
        if self.sampling == "shuffle":
            private_normalisation.check_whole(method, self.normalisation)
        if self.largest_batch is not None and (
            self.batch_size == "full" or self.sampling != "poisson" or self.largest_batch < self.batch_size
        ):
            raise StudyError(
                f"{method}: largest_batch {self.largest_batch}: is for Poisson batches, and at least batch_size "
                f"({self.batch_size})"
            )
        if self.bands > 1 and (self.batch_size == "full" or self.sampling != "poisson" or self.largest_batch):
            raise StudyError(f"{method}: bands {self.bands}: is for Poisson batches without largest_batch")

    @property
    def carried(self) -> float:
        """The momentum of the optimiser, 0 of one without."""
        return self.momentum if self.optimiser == "momentum" else 0.0

    @property
    def picked(self) -> bool:
        """Whether single records are accessed, for mini-batches."""
        return self.batch_size != "full"

    def rate(self, problem: Problem) -> float:
        """The sampling rate q.

        Raises:
            StudyError: the batch is larger than the data set.
        """
        if self.batch_size == "full":
            return 1.0
        if self.batch_size > problem.n:
            raise StudyError(f"{self.METHOD}: batch_size {self.batch_size} exceeds the {problem.n} training records")
        return self.batch_size / problem.n

    def group_rate(self, problem: Problem) -> float:
        """The sampling rate within the group of units that a step draws from: all units, or one of `bands` groups.

        Raises:
            StudyError: groups are smaller than batches.
        """
        rate = self.rate(problem)
        if self.bands == 1 or self.batch_size == "full":
            return rate
        if self.bands * self.batch_size > problem.n:
            raise StudyError(
                f"{self.METHOD}: bands {self.bands} x batch_size {self.batch_size} exceed the {problem.n} training "
                "records, each of which takes part in every bands-th step at most"
            )
        return self.bands * self.batch_size / problem.n

    def total_steps(self, problem: Problem) -> int:
        """T, the number of noisy releases.

        Raises:
            StudyError: the noise is given, and there is no budget to spend.
        """
        if self.steps is not None:
            return self.steps
        if self.epochs is not None:
            return max(1, round(self.epochs / self.rate(problem)))
        return _affordable_steps(self, problem)

    def step_size(self, problem: Problem) -> float:
        """The learning rate as applied."""
        if self.learning_rate_batch is None:
            return self.learning_rate
        return self.learning_rate * self.rate(problem) * problem.n / self.learning_rate_batch

    def gradient_divisor(self, problem: Problem) -> float:
        """The public divisor of the gradient sum over a batch: q n, times C where updates are normalised."""
        divisor = self.rate(problem) * problem.n
        return divisor * self.clipping_norm if self.normalised and problem.clipped else divisor

    def stops(self, steps: int) -> set[int]:
        """The steps after which the model is evaluated."""
        return {round(steps * point / self.curve_points) for point in range(1, self.curve_points + 1)}


def prepared_by(parameters: Schedule) -> bool:
    """The hyper-parameters on which `prepare` depends, for a search; a normalisation is not searched."""
    return parameters.picked


def plan(parameters: Schedule, problem: Problem) -> Plan:
    """Calibrate the gradient noise to the budget that the normalisation leaves."""
    if getattr(parameters, "loss", None) == "softmax":  # not a field of Schedule, but of some methods
        check_softmax(parameters.METHOD, problem, "set loss: sigmoid for several")
    rate, steps, total = parameters.rate(problem), parameters.total_steps(problem), gradient_sum(parameters, problem)
    facts = {"steps": steps, "sampling_rate": rate, "learning_rate_applied": parameters.step_size(problem)}
    parameters.group_rate(problem)  # refused without noise too
    if not problem.noised:
        return Plan((), {GRADIENT: 0.0}, facts)
    if parameters.bands > 1 and problem.secure:
        raise StudyError(
            f"{parameters.METHOD}: bands {parameters.bands}: mixes sums of several steps, which are then not exact, as "
            "noise: secure needs them; set bands: 1"
        )
    if parameters.sampling == "shuffle" and rate < 1.0:
        single_records(parameters.METHOD, problem, "sampling: shuffle")
    fixed = _fixed_events(parameters, problem)

    def events_at(scale: float) -> tuple[Event, ...]:
        return (*fixed, _gradients(parameters, problem, scale, steps))

    scale = calibrate(events_at, problem.budget) if parameters.noise_multiplier is None else parameters.noise_multiplier
    events = events_at(scale)
    if parameters.noise_multiplier is not None and parameters.steps is not None:
        _check_affordable(parameters, problem, events)
    if parameters.sampling == "shuffle" and parameters.batch_size != "full" and rate < 1.0:
        passes = math.ceil(steps / (problem.n // parameters.batch_size))
        shuffled = {"sampling": "shuffle", "sampling_rate": rate, "epochs": passes}
        events = (*fixed, total.event(GRADIENT, scale, steps, **shuffled))
    return Plan(events, {GRADIENT: scale * total.sensitivity()}, facts | {"noise_multiplier": scale})


def gradient_sum(parameters: Schedule, problem: Problem) -> ClippedSum:
    """The clipped gradient sum, which is released in each step."""
    return problem.sum_of(parameters.clipping_norm)


def _fixed_events(parameters: Schedule, problem: Problem) -> tuple[Event, ...]:
    return private_normalisation.events(parameters.normalisation, problem) if parameters.normalisation else ()


def _gradients(parameters: Schedule, problem: Problem, scale: float, steps: int) -> Event:
    rate, largest = parameters.rate(problem), parameters.largest_batch
    sampling: dict = {"sampling": "none" if rate == 1.0 else "poisson", "sampling_rate": rate}
    if largest is not None:
        sampling |= {"sampling": TRUNCATED, "largest": largest, "units": problem.n}
    if parameters.bands > 1:  # of one group of units, once in as many steps
        rate, steps = parameters.group_rate(problem), math.ceil(steps / parameters.bands)
        sampling = {"sampling": "none" if rate == 1.0 else "poisson", "sampling_rate": rate, "bands": parameters.bands}
    return gradient_sum(parameters, problem).event(GRADIENT, scale, steps, **sampling)


@lru_cache(maxsize=64)
def _affordable_steps(parameters: Schedule, problem: Problem) -> int:
    if not problem.noised:
        raise StudyError(
            f"{parameters.METHOD}: noise_multiplier gives no number of steps where no noise is added; give `epochs` or "
            "`steps`"
        )
    fixed, scale = _fixed_events(parameters, problem), parameters.noise_multiplier
    if scale is None:
        raise ValueError(f"{parameters.METHOD}: without a noise multiplier any number of steps is affordable")
    return affordable(lambda steps: (*fixed, _gradients(parameters, problem, scale, steps)), problem.budget)


def _check_affordable(parameters: Schedule, problem: Problem, events: tuple[Event, ...]) -> None:
    """Refuse given steps and a given noise multiplier that cost more than the budget.

    Raises:
        StudyError: steps and noise as given cost more than the budget.
    """
    epsilon = certify(events, problem.budget.delta).epsilon
    if epsilon > problem.budget.target:
        raise StudyError(
            f"{parameters.METHOD}: {parameters.steps} steps at noise_multiplier {parameters.noise_multiplier:g} cost "
            f"epsilon {upper_bound(epsilon)}, above the target {problem.budget.epsilon}; leave one of the two out"
        )


def spent(plan: Plan, step: int) -> tuple[Event, ...]:
    """The events of the first `step` steps, for the epsilon of the training curve."""
    return tuple(
        replace(
            event,
            count=math.ceil(step / (event.bands or 1)),
            epochs=None if event.epochs is None else math.ceil(event.epochs * step / event.count),
        )
        if event.name == GRADIENT
        else event
        for event in plan.events
    )
