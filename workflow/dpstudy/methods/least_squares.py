"""Private least squares from noisy sufficient statistics.

Two variants, both from one pass over the records (sufficient_statistics.py):

`published` is DP-LS, mehta2023 Algorithm 3: theta_j = [A_j + alpha G + lambda I]^-1 b_j, with noise of multiplier s
on each of G, all A_j together and all b_j together.

`improved` releases (G, b) only: theta_j = [floor(G) + lambda I]^-1 b_j.
    Proof. Adding or removing x (|x| <= C) with at most k positives changes G by x x^T, whose Frobenius norm is at
    most C^2, and b by y x^T, of norm at most sqrt(k) C. Gaussian releases of multipliers s_G and s_b compose to
    mu^2 = 1/s_G^2 + 1/s_b^2 exactly; everything after them is post-processing.
The share of mu^2 that G gets is a constant. lambda comes from the known noise level: half the spectral norm
sqrt(2d) s_G C^2 of the symmetric noise (Wigner's semicircle, off-diagonal standard deviation s_G C^2/sqrt(2)), so
nothing is left to tune. Targets of exclusive classes can be centred for free: b - (1/m) 1 (sum_j b_j) is a function of
the released b; that classes sum to one for every record makes it the regression on y - 1/m. Where a record may bear
several labels or none, sum_j b_j is no sum over all records: it is what other labels look like, and subtracting it
would teach each label's score that the others are absent. Nothing is subtracted there; the release is the same.
"""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.methods.checks import finite
from dpstudy.methods.clipped_sum import ClippedSum
from dpstudy.methods.problem import Fit, Plan, Problem
from dpstudy.methods.scaled_plan import scaled_plan
from dpstudy.methods.spectral import solve_floored, solve_ridge, solve_square
from dpstudy.methods.sufficient_statistics import Statistics, accumulate
from dpstudy.models.linear import LinearModel
from dpstudy.privacy.events import Event
from dpstudy.privacy.noise import NoiseSource
from dpstudy.schema.hyperparameters import Hyperparameters, setting

_SMALLEST_RIDGE = 1e-6  # relative to the mean eigenvalue
_CENTRED = "center_targets"


ENTRIES = {  # properties that the workflow's rules read (docs/add-a-method.md)
    "x-reads": "statistics",
    "x-per-class": {"variant": "published"},  # entries for which the class Grams are summed too
    "x-curve": False,
    "x-one-release": True,  # every setting is solved from one noisy release
    "x-averages": True,  # supports `contributions: average`
}


@dataclass(frozen=True)
class Parameters(Hyperparameters):
    """Hyper-parameters of least squares."""

    variant: Literal["improved", "published"] = setting("improved")
    clipping_norm: float = setting(1.0, "C, bound on a record's feature norm.", above=0)
    alpha: float = setting(
        1.0,
        "Weight of the Gram (published).",
        least=0,
        search={"low": 1e-4, "high": 100.0, "where": {"variant": "published"}},
    )
    ridge: float | Literal["known-noise"] = setting(
        "known-noise",
        "Regularisation of sums over records; known-noise: from the spectral norm of the noise.",
        above=0,
        search={"low": 1e-5, "high": 10.0},
    )
    gram_share: float = setting(0.2, "Share of mu^2 spent on the Gram (improved).", above=0, below=1)
    center_targets: bool = setting(
        True,
        "Subtract the mean over classes, a post-processing (improved); of several labels a record nothing is "
        "subtracted.",
    )
    # Algorithm 3 does not print it. Without it, "known-noise" takes a ridge three times as large, so that the system
    # stays definite. An eigendecomposition for each class is what it costs.
    floor: bool = setting(
        True, "Raise negative eigenvalues of the noisy system to zero, as mehta2023's released code does."
    )
    # Without it every entry has its own noise, as Algorithm 3 prints it: the same privacy, twice the noise in the
    # symmetric part.
    symmetric: bool = setting(True, "Draw the noise of a Gram as a symmetric matrix; without it set floor: false too.")

    METHOD: ClassVar[str] = "least_squares"

    def __post_init__(self):
        super().__post_init__()
        if self.floor and not self.symmetric:
            raise StudyError("least_squares: floor raises eigenvalues of a symmetric matrix; set floor: false too")

    @property
    def per_class(self) -> bool:
        """Whether the class Gram matrices A_j are needed."""
        return self.variant == "published"


def clipped_rows(parameters: Parameters, problem: Problem) -> ClippedSum:
    """The clipped records, whose products with themselves and with labels make up the statistics."""
    return problem.sum_of(parameters.clipping_norm)


def plan(parameters: Parameters, problem: Problem) -> Plan:
    """Calibrate the noise to the budget; see the module's proof for the sensitivities."""
    public: dict[str, float] = {} if problem.exclusive or parameters.variant == "published" else {_CENTRED: False}
    if not problem.noised:
        return Plan((), {"gram": 0.0, "targets": 0.0, "class_grams": 0.0}, public)
    scaled = scaled_plan(_unit_events(parameters, problem), problem.budget)
    return replace(scaled, facts={**scaled.facts, **public})


def _unit_events(parameters: Parameters, problem: Problem) -> tuple[Event, ...]:
    """The events before calibration: with a total mu of 1 (improved), or a noise multiplier of 1 each (published)."""
    rows, root = clipped_rows(parameters, problem), math.sqrt(problem.positives)
    gram, targets = rows.products, rows.times(root)
    if parameters.variant == "published":
        return (
            gram.event("gram", 1.0),
            gram.times(root).event("class_grams", 1.0),
            targets.event("targets", 1.0),
        )
    share = parameters.gram_share
    return (
        gram.event("gram", 1 / math.sqrt(share)),
        targets.event("targets", 1 / math.sqrt(1 - share)),
    )


def prepare(batches, parameters: Parameters, problem: Problem) -> Statistics:
    """The private sums that `fit` needs, in one pass over (features, labels) batches."""
    return accumulate(
        batches,
        problem.classes,
        clipped_rows(parameters, problem).clip,
        problem.positives,
        per_class=parameters.per_class,
        exact=problem.exact,
        averaged=problem.averaged,
        class_weights=problem.class_weights,
    )


def prepared_by(parameters: Parameters) -> tuple[float, bool]:
    """The hyper-parameters on which `prepare` depends."""
    return parameters.clipping_norm, parameters.per_class


def fit(statistics: Statistics, parameters: Parameters, problem: Problem, plan: Plan, source: NoiseSource) -> Fit:
    """Release the noisy statistics of one seed and solve.

    Raises:
        ValueError: the sums were clipped or labelled otherwise than the noise was planned for.
    """
    known = (statistics.clipping_norm, statistics.positives)
    if known != (clipped_rows(parameters, problem).clip, problem.positives):
        raise ValueError(
            f"statistics with clipping norm {statistics.clipping_norm} and {statistics.positives} positives do not fit "
            f"a plan for {clipped_rows(parameters, problem).clip} and {problem.positives}"
        )
    if problem.averaged != statistics.averaged:
        raise ValueError("statistics of averaged records do not fit a plan for all of them, nor the other way about")
    if problem.class_weights != statistics.class_weights:
        raise ValueError("statistics in which records count for other weights do not fit the plan")
    if problem.exact and not statistics.exact:
        raise ValueError("statistics that were rounded do not fit a plan with secure noise")
    released = release(statistics, parameters, plan, source)
    return Fit(finite("least_squares", solve(released, parameters, plan)))


def release(statistics: Statistics, parameters: Parameters, plan: Plan, source: NoiseSource) -> dict[str, np.ndarray]:
    """The noisy statistics, from the only function here that reads private sums and whose result is published."""
    noisy = {"gram": statistics.gram, "targets": statistics.targets}
    if parameters.per_class:
        noisy["class_grams"] = class_grams = _class_grams(statistics)
    if not plan.events:
        return noisy
    symmetric = parameters.symmetric
    noisy["gram"] = source.released("gram", statistics.gram, plan.noise["gram"], symmetric=symmetric)
    noisy["targets"] = source.released("targets", statistics.targets, plan.noise["targets"])
    if parameters.per_class:
        noisy["class_grams"] = np.empty_like(class_grams)
        for index, matrix in enumerate(class_grams):
            noisy["class_grams"][index] = source.released(
                "class_grams", matrix, plan.noise["class_grams"], tensor=str(index), symmetric=symmetric
            )
    return noisy


def released_by(parameters: Parameters) -> tuple[str, bool]:
    """The hyper-parameters on which `release` depends, besides the plan."""
    return parameters.variant, parameters.symmetric


def _class_grams(statistics: Statistics) -> np.ndarray:
    if statistics.class_grams is None:
        raise ValueError("the statistics have no class Grams, which this variant releases")
    return statistics.class_grams


def solve(released: dict[str, np.ndarray], parameters: Parameters, plan: Plan) -> LinearModel:
    """Weights from released statistics: post-processing."""
    gram, targets = released["gram"], released["targets"]
    solver = (solve_floored if parameters.floor else solve_ridge) if parameters.symmetric else solve_square
    if parameters.variant == "published":
        ridge = _ridge(parameters, gram, _published_noise(parameters, plan))
        systems = (matrix + parameters.alpha * gram for matrix in released["class_grams"])
        weights = np.concatenate(
            [solver(system, ridge, targets[index : index + 1]) for index, system in enumerate(systems)]
        )
    else:
        if plan.facts.get(_CENTRED, parameters.center_targets):
            targets = targets - targets.mean(0)
        weights = solver(gram, _ridge(parameters, gram, plan.noise["gram"]), targets)
    return LinearModel(weights, np.zeros(len(weights), np.float32), metadata={"method": "least_squares"})


def _published_noise(parameters: Parameters, plan: Plan) -> float:
    """Standard deviation of the noise on the diagonal of A_j + alpha G."""
    return math.hypot(plan.noise["class_grams"], parameters.alpha * plan.noise["gram"])


def _ridge(parameters: Parameters, gram: np.ndarray, std: float) -> float:
    """The ridge lambda: as given, or the spectral norm of the noise; never below a floor relative to the trace."""
    dim = len(gram)
    smallest = _SMALLEST_RIDGE * max(float(np.trace(gram)) / dim, 1e-12)
    if parameters.ridge != "known-noise":
        return max(float(parameters.ridge), smallest)
    share = 0.5 if parameters.floor else 1.5
    return max(share * math.sqrt(2 * dim) * std, smallest)
