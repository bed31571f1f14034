"""Instance-level smoothing as anon_smoothing publishes it; its privacy claim does not hold: ledgers say `claimed`.

A projection W (p x d) of frozen features is trained so that kernel densities of the classes are apart
(kernel_projection.py). Each record is published as the point W x_i + N_i, N_i ~ N(0, (s_i sigma)^2) in each dimension
(Proposition 1), with sigma^2 = 2 ln(1/delta')/rho (Theorem 1) and epsilon = rho + 2 sqrt(rho ln(1/delta)) (section 2),
and a record is classified by the highest kernel density (section 3.3).

Why nothing is proved: s_i is a *local* sensitivity, computed from the private records themselves; it bounds by how much
a density changes, but the noise is added to points; W and the bandwidths are published as they were fitted. Copies
shrink s_i, and where all records are the same it is 0: they are published as they are.

Four things can be read in more than one way; the literal reading is the default:
    `sensitivity`: s_i is a density (unit: one over a length to the power p) and is used as a length ("density"), or as
        the share of the density at x_i that is its own, times its bandwidth ("share").
    `constant`: C of Theorem 2 is 1/sqrt(2 pi h^2) in section 3.2 ("section"), 1/(sqrt(2 pi) h^2) in A.2 ("appendix").
    `noised`: "the following section" writes x_i for the noised points, so that W is trained on them ("training"), or
        they are noised only when they are published ("release"). Bandwidths and s_i are those of the points themselves.
    `negatives`: Eq. 1 sums the kernels of all other classes ("pooled"); classification compares classes one by one, and
        so may the loss ("each").
N_r is a density in Proposition 2, but its threshold is said of distances: here N_r = threshold/distance.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from dpstudy.core.errors import StudyError
from dpstudy.methods.checks import finite
from dpstudy.methods.kernel_projection import Contrast, first_projection, projected, train
from dpstudy.methods.local_sensitivity import Bandwidths, deviations, instance_noise
from dpstudy.methods.problem import Fit, Plan, Problem
from dpstudy.methods.records import Records
from dpstudy.methods.smoothing_attacks import attacks
from dpstudy.methods.units import single_records
from dpstudy.models.kernel_density import KernelModel, as_stored
from dpstudy.privacy.claimed import noise_multiplier, rho_of
from dpstudy.privacy.events import LOCAL, Event
from dpstudy.privacy.noise import NoiseSource
from dpstudy.schema.hyperparameters import Hyperparameters, setting

POINTS = "points"
_METHOD = "instance_smoothing"
_CONSTANTS = {
    "section": lambda h: 1 / math.sqrt(2 * math.pi * h**2),
    "appendix": lambda h: 1 / (math.sqrt(2 * math.pi) * h**2),
}


ENTRIES = {  # properties that the workflow's rules read (docs/add-a-method.md)
    "x-reads": "features",
    "x-curve": True,
    "x-audited": True,  # each cell attacks its own claim
}


@dataclass(frozen=True)
class Parameters(Hyperparameters):
    """Hyper-parameters of instance-level smoothing."""

    projected_dim: int = setting(64, "p, dimensions of the space of densities.", least=1)
    bandwidth: float = setting(1.0, "h of every kernel; the projection's scale is learned.", above=0)
    extra_bandwidth: float = setting(1.0, "c of h' = h c/N_r, what kernels in sparse regions are widened by.", above=0)
    neighbours: int = setting(5, "k of the mean distance to the nearest neighbours.", least=1)
    percentile: float = setting(50.0, "Of these distances: where sparse regions begin.", above=0, below=100)
    margin: float = setting(10.0, "By how much the log density of the own class shall exceed the others'.", above=0)
    noise_delta: float = setting(
        1e-5,
        "delta' of sigma^2 = 2 ln(1/delta')/rho; the paper says that it is not the delta of the guarantee.",
        above=0,
        below=1,
    )
    order: float = setting(2.0, "alpha of the bound on the number of samples (Theorem 2).", above=1)
    sensitivity: Literal["density", "share"] = setting(
        "density",
        "s_i: the density itself, as printed, or its share of the density at the record, times the bandwidth.",
    )
    constant: Literal["section", "appendix"] = setting(
        "section", "C of Theorem 2: 1/sqrt(2 pi h^2) of section 3.2, or 1/(sqrt(2 pi) h^2) of A.2."
    )
    noised: Literal["training", "release"] = setting(
        "training", "Points are noised while the projection is trained too, or only as they are published."
    )
    negatives: Literal["pooled", "each"] = setting(
        "pooled",
        "The loss compares a record's class with all other points together, as Eq. 1 does, or with each other class.",
    )
    epochs: int = setting(10, "Of the projection's training.", least=1)
    batch_size: int = setting(4096, "Of the projection's training.", least=1)
    learning_rate: float = setting(0.1, "Of Adam, relative to the entries of the first projection.", above=0)
    references: int | None = setting(
        None,
        "Points that the densities of a training step are over, drawn anew for each; all where absent.",
        least=1,
    )
    # changes no result, so it is not part of the text that keys the noise of `fit`
    curve_points: int = setting(5, "How often along training the model is scored.", least=1, keyed=False)
    attack_runs: int = setting(100_000, "Runs of each attack with and without its target.", least=100)

    METHOD: ClassVar[str] = _METHOD

    @property
    def bandwidths(self) -> Bandwidths:
        """The bandwidths of the kernels."""
        return Bandwidths(self.bandwidth, self.extra_bandwidth, self.neighbours, self.percentile)

    @property
    def contrast(self) -> Contrast:
        """The settings of the projection's contrastive training."""
        return Contrast(self.margin, self.epochs, self.batch_size, self.learning_rate, self.references, self.negatives)


@dataclass(frozen=True)
class TrainingSet:
    """Private records and their labels, (n,) or (n, m)."""

    records: Records
    labels: torch.Tensor


def plan(parameters: Parameters, problem: Problem) -> Plan:
    """The plan: sigma from the claimed epsilon, and the constants of the paper's theorems.

    Raises:
        StudyError: more dimensions than features, clipping that this method does not have, or units of several records.
    """
    single_records(_METHOD, problem, "the claimed guarantee")
    if parameters.projected_dim > problem.dim:
        raise StudyError(
            f"{_METHOD}: projected_dim {parameters.projected_dim}: records have {problem.dim} features only; choose at "
            "most that"
        )
    if problem.sanitise == "clip":
        raise StudyError(f"{_METHOD}: it clips nothing, so that sanitise: clip means nothing; use full or none")
    if not problem.noised:
        return Plan((), {POINTS: 0.0})
    rho = rho_of(problem.budget.target, problem.budget.delta)
    sigma = noise_multiplier(rho, parameters.noise_delta)
    facts = {
        "rho": rho,
        "smallest_n": _CONSTANTS[parameters.constant](parameters.bandwidth) / (rho * (parameters.order - 1)),
        "error_bound": 2 * math.exp(-(parameters.margin**2) * rho / (4 * math.log(1 / parameters.noise_delta))),
        "noise_multiplier_points": sigma,
    }
    return Plan((Event(POINTS, LOCAL, sigma, None),), {POINTS: sigma}, facts)


def spent(plan: Plan, step: int) -> tuple[Event, ...]:
    """The events of the first epochs: always the same one, since the points are published once, after any epoch."""
    return plan.events


def prepare(batches, parameters: Parameters, problem: Problem) -> TrainingSet:
    """Read (features, labels) batches; records that are not finite become zero."""
    records = Records.read(batches, problem.classes, problem.positives, tensors=True)
    return TrainingSet(records, torch.cat([block.labels for block in records.blocks()]).long())


def prepared_by(parameters: Parameters) -> None:
    """None, since `prepare` depends on no hyper-parameter."""


def fit(
    data: TrainingSet,
    parameters: Parameters,
    problem: Problem,
    plan: Plan,
    source: NoiseSource,
    monitor: Callable[[int, KernelModel], None] | None = None,
) -> Fit:
    """Train one seed. `monitor(epoch, model)` is called `curve_points` times."""
    records, generator = data.records, source.sampling("projection")
    standard: torch.Tensor | None = None
    if plan.events:
        drawn = source.gaussian(POINTS, (records.rows, parameters.projected_dim), 1.0)
        standard = torch.from_numpy(drawn).to(records.place.device)

    known: list[torch.Tensor] = []  # cached for the last points, since it takes two passes over all pairs

    def smoothing(points: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The noise N_i of all points (zero without noise), and the variances of their kernels."""
        if not known or not torch.equal(known[0], points):
            variances = parameters.bandwidths.variances(points)
            added = torch.zeros_like(points)
            if standard is not None:
                added = instance_noise(
                    standard, deviations(points, variances, parameters.sensitivity, plan.noise[POINTS])
                )
            known[:] = points, added, variances
        return known[1], known[2]

    def smoothed(points: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The noise that is added to the points while W is trained, and the variances of their kernels."""
        if parameters.noised == "training":
            return smoothing(points)
        return torch.zeros_like(points), parameters.bandwidths.variances(points)

    def model(projection: torch.Tensor) -> KernelModel:
        points = projected(records, projection)
        added, variances = smoothing(points)
        learned, published, widths = (value.cpu().numpy() for value in (projection, points + added, variances))
        labels = as_stored(data.labels.cpu().numpy())
        return KernelModel(learned, published, widths, labels, records.classes, {"method": _METHOD})

    start = first_projection(records, parameters.projected_dim, generator)
    stops = {round(parameters.epochs * point / parameters.curve_points) for point in range(1, parameters.curve_points)}
    passes = train(records, data.labels, start, parameters.contrast, smoothed, generator)
    for epoch, projection in enumerate(passes, start=1):
        if monitor and epoch in stops and epoch < parameters.epochs:
            monitor(epoch, finite(_METHOD, model(projection)))
    last = finite(_METHOD, model(projection))
    if monitor:
        monitor(parameters.epochs, last)
    return Fit(last)


def audit(
    fitted: Fit, data: TrainingSet, parameters: Parameters, problem: Problem, plan: Plan, source: NoiseSource
) -> list[dict]:
    """Attacks on the points of a trained model, under both readings of the local sensitivity (audit.json)."""
    if not plan.events:
        return []
    if not isinstance(fitted.model, KernelModel):
        raise TypeError(f"{_METHOD}: its attacks are on a model of its own, not on a {type(fitted.model).__name__}")
    projection = torch.from_numpy(fitted.model.projection).to(data.records.place.device)
    return attacks(
        projected(data.records, projection),
        parameters.bandwidths,
        plan.noise[POINTS],
        problem.budget,
        parameters.sensitivity,
        parameters.attack_runs,
        source,
    )
