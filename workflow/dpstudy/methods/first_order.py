"""DP-SGD, momentum and DP-Adam for a linear head, with closed-form per-example clipping (gradients.py).

Privacy: a record that takes part changes the clipped sum by at most C; noise of standard deviation s C is added to
the sum once per step, an empty batch included, and the result is divided by the public q n. mehta2023's Algorithm 1
adds sigma C to a *mean*, which is n times too much; its Eq. 3 (sigma C / n) is what this computes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

from dpstudy.core.arrays import add_scaled
from dpstudy.core.errors import StudyError
from dpstudy.methods import private_normalisation
from dpstudy.methods.banded import BandedReleases
from dpstudy.methods.checks import finite
from dpstudy.methods.gradients import CLIPPINGS, LOSSES, Head, clipped_sum
from dpstudy.methods.optimisers import ExponentialAverage, TailAverage, make_optimiser
from dpstudy.methods.private_normalisation import ChannelSums
from dpstudy.methods.problem import Fit, Plan, Problem
from dpstudy.methods.records import Records
from dpstudy.methods.sampling import units_of_steps
from dpstudy.methods.schedule import GRADIENT, LENGTH, Schedule, gradient_sum, plan, prepared_by, spent
from dpstudy.methods.units import Units, units_of
from dpstudy.models.linear import LinearModel
from dpstudy.privacy.noise import NoiseSource
from dpstudy.schema.hyperparameters import setting

__all__ = ["Parameters", "fit", "plan", "prepare", "prepared_by", "spent"]


ENTRIES = {  # properties that the workflow's rules read (docs/add-a-method.md)
    **LENGTH,
    "x-reads": "features",
    "x-curve": True,
    "x-beyond-target": {"sampling": "shuffle"},  # these entries certify a larger epsilon than the target
    "x-one-label": {"where": [{"loss": "softmax"}], "instead": "set loss: sigmoid"},
    "x-averages": True,  # supports `contributions: average`
}


@dataclass(frozen=True, repr=False)
class Parameters(Schedule):
    """Hyper-parameters of first-order training, besides those of `Schedule`."""

    learning_rate: float = setting(
        about="What averaged gradients are multiplied by.", above=0, search={"low": 1e-3, "high": 100.0}
    )
    loss: str = setting("softmax", "sigmoid: the mean over classes.", choices=LOSSES)
    bias: Literal["learned"] | float = setting("learned", "Fixed in mehta2023: -10 with the sigmoid loss.")
    weight_decay: float = setting(0.0, "An L2 penalty; its gradient joins the released one.", least=0)
    clipping: str = setting(
        "norm",
        "norm scales gradients down to the clipping norm; automatic scales each to about that norm (Bu et al. 2022, "
        "AUTO-S).",
        choices=CLIPPINGS,
    )
    average: bool = setting(False, "Return the mean of the last half of the iterates.")
    moving_average: float = setting(
        0.0, "Decay of an exponential average of the iterates, which is then the model; 0 for none.", least=0, below=1
    )

    METHOD: ClassVar[str] = "first_order"

    def __post_init__(self):
        super().__post_init__()
        if self.average and self.moving_average:
            raise StudyError("first_order: average and moving_average: choose one of the two")


@dataclass(frozen=True)
class TrainingSet:
    """Private records, and the private sums for a normalisation, which all seeds share (or None)."""

    records: Records
    units: Units
    sums: ChannelSums | None


def prepare(batches, parameters: Parameters, problem: Problem) -> TrainingSet:
    """Read (features, labels) batches; non-finite records become zero and take no part."""
    records = Records.of(batches, problem, parameters.picked)
    units = units_of(batches, records.rows, problem, parameters.picked, parameters.sampling == "shuffle")
    return TrainingSet(records, units, private_normalisation.shared_sums(records, parameters.normalisation, problem))


def fit(
    data: TrainingSet,
    parameters: Parameters,
    problem: Problem,
    plan: Plan,
    source: NoiseSource,
    monitor: Callable[[int, LinearModel], None] | None = None,
) -> Fit:
    """Train one seed. `monitor(step, model)` is called `curve_points` times with released models."""
    records, center, scale = data.records, None, None
    if parameters.normalisation:
        records, center, scale = private_normalisation.normalised(
            records, data.sums, parameters.normalisation, problem, source
        )
    head = Head(parameters.loss, parameters.bias, gradient_sum(parameters, problem).clip, parameters.clipping)
    weights = head.start(records)
    optimiser = make_optimiser(parameters.optimiser, parameters.step_size(problem), parameters.momentum, weights)
    steps, divisor = parameters.total_steps(problem), parameters.gradient_divisor(problem)
    stops, releases = parameters.stops(steps), BandedReleases(parameters.bands, parameters.carried)
    average: TailAverage | ExponentialAverage | None = TailAverage(steps) if parameters.average else None
    if parameters.moving_average:
        average = ExponentialAverage(parameters.moving_average, weights)
    for step, index in enumerate(units_of_steps(parameters, problem, data.units, source), start=1):
        gradient = clipped_sum(records, weights, head, index)
        if plan.events:
            gradient = releases.released(source, GRADIENT, gradient, plan.noise[GRADIENT], step)
        gradient /= divisor
        if parameters.weight_decay:
            add_scaled(gradient, weights, parameters.weight_decay)
        optimiser.step(weights, gradient)
        released = average.add(weights, step) if average else weights
        if monitor and step in stops:
            monitor(step, head.model(released, "first_order", center, scale))
    return Fit(finite("first_order", head.model(released, "first_order", center, scale)))
