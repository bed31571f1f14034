"""Kernel means of the classes, released privately: instance-level smoothing with a proof.

What anon_smoothing is after, class densities in a projected space that are smoothed where records are sparse, from one
noisy release:
    1. A projection: none (W is public: what the features are, or a fit on public data), or trained here on private
       records against public prototypes, the corners of the simplex, by DP-SGD or by feature_covariance, for a share
       of mu^2. A record becomes a point of norm 1 (models/random_features.py).
    2. psi(x), random Fourier features of that point, has norm at most 1, whatever the record. Its bandwidth may depend
       on how far the point is from *public* ones: a map of each record alone.
    3. The sums of psi over each class, and where records may have several labels over all records, are released with
       Gaussian noise. Proof: adding or removing x with at most k labels changes the sums by psi(x) in k rows (k + 1
       with that of all records), hence by at most sqrt(k) (sqrt(k + 1)) in Frobenius norm; a unit of r records by r
       times that. With the projection's releases, and the class counts' where they are asked for, mu^2 adds up.
    4. All else is post-processing: a wider bandwidth (damping high frequencies), division by counts, and `smoothing:
       public`, the linear estimate of the labels from the released sums s_t and the public second moment M of psi:
       theta_t = v M (v M^2 + tau^2 + v M/n)^-1 s_t/n, which is Bayes' for weights of variance v, noise of standard
       deviation tau on s_t/n and n records; v is read off the released sums.
The defaults (the bandwidth, the projection's share, and the settings of its DP-SGD) were chosen on MNIST, with features
of a network that was trained on EMNIST letters, and frozen before any other data were looked at.
"""

import math
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import numpy as np

from dpstudy.core.arrays import HOST, to_numpy
from dpstudy.core.errors import StudyError
from dpstudy.methods import feature_covariance, first_order
from dpstudy.methods.averaging import scaled
from dpstudy.methods.checks import finite, one_of
from dpstudy.methods.kernel_points import PSI_GRID, exact_map
from dpstudy.methods.kernel_weights import bayes_weights, widened
from dpstudy.methods.problem import Fit, Plan, Problem
from dpstudy.methods.records import Records
from dpstudy.methods.row_map import RowMap
from dpstudy.methods.scaled_plan import scaled_plan
from dpstudy.models.linear import LinearModel
from dpstudy.models.random_features import FeatureMap, Landmarks, RandomFeatureModel, draw_frequencies
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.gaussian import composed_mu, epsilon_of, mu_of
from dpstudy.privacy.noise import NoiseSource
from dpstudy.privacy.printed import upper_bound
from dpstudy.schema.hyperparameters import Hyperparameters, setting

SUMS, COUNTS = "class_sums", "class_counts"
AUDITED_BY_CLASS, AUDITED_DIM = True, 8  # random features mix all; with several labels canaries share classes too
PROJECTIONS = {"dp-sgd": first_order, "feature_covariance": feature_covariance}
_METHOD = "kernel_mean"


ENTRIES = {  # properties that the workflow's rules read (docs/add-a-method.md)
    "x-reads": "features",
    # data sets that unpublished defaults were chosen on: their ledgers say so
    "x-chosen-on": ["MNIST", "CIFAR-10", "EMNIST letters", "CIFAR-100"],
    # hyper-parameters that need the fit's public points where they are not at their default
    "x-reads-public": ["smoothing", "extra_bandwidth"],
    "x-curve": False,
    "x-averages": True,  # supports `contributions: average`
}


@dataclass(frozen=True)
class Parameters(Hyperparameters):
    """Hyper-parameters of kernel means."""

    frequencies: int = setting(1000, "D, of random Fourier features; a point has 2D features.", least=1)
    frequency_seed: int = setting(0, "Of the frequencies, which are public.", least=0)
    bandwidth: float = setting(0.5, "h, of points of norm 1.", above=0, search={"low": 0.1, "high": 2.0})
    widen: float = setting(0.0, "Kernels are widened by this much after the release.", least=0)
    projection: Literal["none", "dp-sgd", "feature_covariance"] = setting(
        "feature_covariance",
        "What trains the projection on private records, for a part of the budget; none leaves the features, or their "
        "fit on a public set, as they are.",
    )
    projection_share: float = setting(0.8, "Share of mu^2 that the projection takes.", above=0, below=1)
    class_shares: str | tuple[float, ...] = setting(
        "drawn",
        "drawn: classes are as likely as among the records; released: equally likely, by noisy counts; or the public "
        "share of each (of each label).",
        schema={
            "anyOf": [
                {"enum": ["drawn", "released"]},
                {"type": "array", "minItems": 2, "items": {"type": "number", "exclusiveMinimum": 0, "maximum": 1}},
            ]
        },
    )
    counts_share: float = setting(0.02, "Share of mu^2 that released counts take.", above=0, below=1)
    smoothing: Literal["none", "public"] = setting(
        "none", "public: the best linear estimate with the second moment of public points, which the fit brings."
    )
    extra_bandwidth: float = setting(
        0.0, "c of h' = h c distance/lambda, by which kernels are widened where public points are sparse.", least=0
    )
    neighbours: int = setting(5, "k of the mean distance to the nearest public points.", least=1)
    percentile: float = setting(
        50.0, "Of the public points' own distances: where sparse regions begin.", above=0, below=100
    )

    METHOD: ClassVar[str] = _METHOD

    def __post_init__(self):
        super().__post_init__()
        if not self.projection_share + self.counts_share < 1:
            raise StudyError(f"{_METHOD}: projection_share and counts_share must add up to less than 1")
        if isinstance(self.class_shares, str):
            one_of(_METHOD, "class_shares", self.class_shares, ("drawn", "released"))
        elif not all(0 < share <= 1 for share in self.class_shares):
            raise StudyError(f"{_METHOD}: class_shares must be numbers above 0, 1 at most")

    @property
    def needs_public(self) -> bool:
        """Whether public features are needed."""
        return self.smoothing == "public" or self.extra_bandwidth > 0


@dataclass(frozen=True)
class Stage:
    """The private training of the projection: a linear method with a part of the budget."""

    parameters: object
    problem: Problem
    plan: Plan


@dataclass(frozen=True)
class TrainingSet:
    """Private records, the training set of the projection, and public points (N, d) or None."""

    records: Records
    projected_from: object
    public: np.ndarray | None
    sums: dict = field(default_factory=dict)


def _stage(parameters: Parameters, problem: Problem) -> Stage | None:
    if parameters.projection == "none":
        return None
    budget = problem.budget
    if problem.noised:
        mu = mu_of(budget.target, budget.delta) * math.sqrt(parameters.projection_share)
        share = epsilon_of(mu, budget.delta)
        if not share:
            raise StudyError(
                f"{_METHOD}: epsilon {budget.epsilon} is too small to be divided at delta "
                f"{upper_bound(budget.delta)}; set projection: none"
            )
        budget = Budget(np.format_float_positional(share, trim="-"), budget.delta)
    stage_problem = replace(problem, budget=budget)
    loss = "softmax" if problem.exclusive else "sigmoid"
    chosen: first_order.Parameters | feature_covariance.Parameters
    if parameters.projection == "dp-sgd":
        chosen = first_order.Parameters(
            loss=loss, learning_rate=16.0, clipping_norm=0.1, normalised=True, steps=40, batch_size="full", average=True
        )
    else:
        chosen = feature_covariance.Parameters(loss=loss)
    return Stage(chosen, stage_problem, PROJECTIONS[parameters.projection].plan(chosen, stage_problem))


def plan(parameters: Parameters, problem: Problem) -> Plan:
    """Calibrate the noise to the budget; see the module's proof.

    Raises:
        StudyError: class shares of another number of classes, another accounting than the certified one, or records
            that bear one label or none, without the sum over all records that tells what bears none.
    """
    if problem.positives == 1 and not problem.exclusive:
        raise StudyError(
            f"{_METHOD}: with positives: 1, records without a label would not count at all; set positives: 2 for the "
            "data set, or make the absence a class of its own"
        )
    if not isinstance(parameters.class_shares, str) and len(parameters.class_shares) != problem.classes:
        raise StudyError(
            f"{_METHOD}: class_shares has {len(parameters.class_shares)} numbers for {problem.classes} classes"
        )
    stage = _stage(parameters, problem)
    if not problem.noised:
        noise = dict.fromkeys((SUMS, COUNTS), 0.0)
        return Plan((), {**noise, **(stage.plan.noise if stage else {})}, stage.plan.facts if stage else {})
    if problem.budget.accounting != "certified":
        raise StudyError(f"{_METHOD}: its budget is divided exactly; set accounting: certified")
    unit_rows, sums = problem.sum_of(1.0), problem.positives + (problem.positives > 1)
    fixed = stage.plan.events if stage else ()
    rest = mu_of(problem.budget.target, problem.budget.delta) ** 2 - composed_mu(fixed) ** 2
    unit = [unit_rows.times(math.sqrt(sums)).event(SUMS, 1.0)]
    if parameters.class_shares == "released":
        share = parameters.counts_share / (1 - (parameters.projection_share if stage else 0))
        unit = [unit[0].scaled((1 - share) ** -0.5)]
        unit.append(unit_rows.times(math.sqrt(problem.positives)).event(COUNTS, share**-0.5))
    unit = [event.scaled(rest**-0.5) for event in unit]
    own = scaled_plan(unit, problem.budget, fixed=fixed)
    if stage is None:
        return own
    before = {f"projection_{k}": v for k, v in stage.plan.facts.items()}
    return Plan((*fixed, *own.events), {**stage.plan.noise, **own.noise}, {**before, **own.facts})


def prepare(batches, parameters: Parameters, problem: Problem, public: np.ndarray | None = None) -> TrainingSet:
    """Read (features, labels) batches, and public features (N, d); records that are not finite take no part.

    Raises:
        StudyError: public points are needed and not there.
    """
    if parameters.needs_public:
        public = _needed(public)
    stage = _stage(parameters, problem)
    if stage is None:
        return TrainingSet(Records.of(batches, problem), None, public)
    inner = PROJECTIONS[parameters.projection].prepare(batches, stage.parameters, stage.problem)
    return TrainingSet(inner.records.mapped(RowMap()), inner, public)


def _needed(public: np.ndarray | None) -> np.ndarray:
    if public is None:
        raise StudyError(
            f"{_METHOD}: smoothing: public and extra_bandwidth read public points, and this feature set has none; give "
            "it a fit on a public set"
        )
    return public


def prepared_by(parameters: Parameters) -> str:
    """The hyper-parameters on which `prepare` depends."""
    return parameters.projection


def fit(data: TrainingSet, parameters: Parameters, problem: Problem, plan: Plan, source: NoiseSource) -> Fit:
    """Train the projection, release one seed's class sums and make a classifier of them."""
    projection = None
    if stage := _stage(parameters, problem):
        method = PROJECTIONS[parameters.projection]
        projection = method.fit(data.projected_from, stage.parameters, stage.problem, stage.plan, source).model
    mapping = feature_map(parameters, problem, data, projection)
    released = release(data, mapping, parameters, problem, plan, source)
    return Fit(finite(_METHOD, _model(released, mapping, parameters, problem, plan, data.public)))


def feature_map(
    parameters: Parameters, problem: Problem, data: TrainingSet, projection: LinearModel | None
) -> FeatureMap:
    """The feature map psi, from public constants and released values."""
    link = "softmax" if problem.exclusive else "sigmoid"
    plain = FeatureMap(np.zeros((1, 1), np.float32), projection, link)
    width = plain.points(np.zeros((1, data.records.dim), np.float32)).shape[1]
    drawn = draw_frequencies(parameters.frequencies, width, parameters.bandwidth, parameters.frequency_seed)
    marks = None
    if parameters.extra_bandwidth:
        import torch

        from dpstudy.methods.local_sensitivity import neighbour_distances

        points = plain.points(_needed(data.public))
        marks = Landmarks(points, parameters.neighbours, 1.0, parameters.bandwidth * parameters.extra_bandwidth)
        others = neighbour_distances(torch.from_numpy(points), parameters.neighbours).numpy()
        marks = replace(marks, threshold=max(float(np.percentile(others, parameters.percentile)), 1e-6))
    return FeatureMap(drawn, projection, link, marks)


def release(
    data: TrainingSet,
    mapping: FeatureMap,
    parameters: Parameters,
    problem: Problem,
    plan: Plan,
    source: NoiseSource,
) -> dict[str, np.ndarray]:
    """(m, 2D) noisy class sums, plus a row over all records if they may have several labels, and (m,) counts."""
    # without a projection every seed has the same sums
    wide = (parameters.extra_bandwidth, parameters.neighbours, parameters.percentile)
    key = (parameters.frequencies, parameters.frequency_seed, parameters.bandwidth, *wide)
    sums, counts = data.sums.get(key) or _class_sums(data.records, mapping, whole=problem.positives > 1)
    if mapping.projection is None:
        data.sums[key] = sums, counts
    totals = {SUMS: sums.copy()}
    if parameters.class_shares == "released":
        totals[COUNTS] = counts.copy()
    if problem.noised:
        totals = {name: source.released(name, value, plan.noise[name]) for name, value in totals.items()}
    return totals


def _class_sums(records: Records, mapping: FeatureMap, whole: bool) -> tuple[np.ndarray, np.ndarray]:
    """(m [+ 1], 2D) private sums of psi over the records of each class [and over all], and (m,) class counts."""
    where = records.place
    sums = where.zeros(records.classes + whole, mapping.dim, dtype="float64")
    counts = where.zeros(records.classes, dtype="float64")
    for block in records.blocks(mapping.rows()):
        psi = exact_map(mapping, block.features) if records.capacity else mapping(to_numpy(block.features), where)
        alive = where.array(block.norms == block.norms, records.dtype)[:, None]
        grid = PSI_GRID if records.capacity else None
        borne = block.one_hot(records.classes) * alive
        counts += scaled(borne, block.weights, grid).sum(0)
        if whole:
            borne = where.xp.concatenate([borne, alive], 1)
        sums += borne.T @ scaled(psi, block.weights, grid)
    return to_numpy(sums), to_numpy(counts)


def _model(released, mapping: FeatureMap, parameters: Parameters, problem: Problem, plan: Plan, public):
    """The classifier from released sums: post-processing."""
    sums, std = released[SUMS], plan.noise[SUMS]
    classes = problem.classes
    shares = np.ones(classes)
    if parameters.class_shares == "released":
        shares = np.maximum(released[COUNTS], max(1.0, plan.noise[COUNTS])) / problem.n
    elif not isinstance(parameters.class_shares, str):
        shares = np.array(parameters.class_shares)
    metadata = {"method": _METHOD}
    if parameters.smoothing == "public":
        psi = (mapping(public[start : start + 1024], HOST) for start in range(0, len(public), 1024))
        weights = bayes_weights(sums[:classes], std, problem.n, psi, exclusive=problem.positives == 1)
        return RandomFeatureModel(mapping, (weights / shares[:, None]).astype(np.float32), metadata=metadata)
    sums = widened(sums, mapping.frequencies, parameters.widen)
    whole = sums[classes] if len(sums) > classes else sums.sum(0)
    noise = std * (1 if len(sums) > classes else math.sqrt(classes))
    weights = (sums[:classes] / shares[:, None]).astype(np.float32)
    return RandomFeatureModel(mapping, weights, whole.astype(np.float32), max(1.0, 2 * noise), metadata)
