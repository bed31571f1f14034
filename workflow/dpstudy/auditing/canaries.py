"""A membership inference game on a method's releases: was this canary among the training records?

A canary is a record whose contribution to each release is as large as the clipping allows. `PACK` of them take part
in one training, each with a coin of its own: canary i has a feature of its own, the others have none of it, so that
what it adds to a release (an element of a Gram's diagonal, a column of a gradient) meets noise that the others do not
touch. Where features are mixed it has a class of its own. One training is thus as many independent runs of the game.

The attacker sees every release, and knows all but the coin: what the releases' private sums would have been along the
same path with all canaries, and with none, is computed by training twice more on a tape (`Replay`), whose releases
are those of the run whatever the sums. All three end with the last release: what is made of it tells nothing more,
and takes most of the time. The statistic is the likelihood ratio of the releases for each canary, a
mixture where batches are samples. Any statistic gives a valid lower bound; this one is the best where contributions
do not depend on other canaries.
"""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count, groupby
from types import ModuleType

import numpy as np

from dpstudy import methods
from dpstudy.auditing.tapes import EnoughError, Replay, Silent, Watched
from dpstudy.core.errors import StudyError
from dpstudy.methods.averaging import Subjects
from dpstudy.methods.problem import Plan, Problem
from dpstudy.privacy.events import Event
from dpstudy.privacy.noise import NoiseSource

PACK = 61
_PUBLIC_POINTS = 200
_LEARNING_RATE = 1e-12
_BESIDE = 3  # features beside one a class: no axis of a release is as long as both are
_AMPLITUDE = 1e3  # beyond every clipping norm
_PILOT = 6000  # coins of pilot runs, which say what canaries add to weights


@dataclass(frozen=True)
class Game:
    """A method with its settings on a problem of small dimension, ready to be attacked.

    Attributes:
        module: of the method.
        parameters: its `Parameters`.
        problem: whose first features are the canaries' own.
        plan: what the method releases of that problem.
        canaries: how many take part in one training: as many as the problem has features, or classes, or one.
        beside: further arguments of `prepare` (public points, weights to start from).
        records: as of `Rows`.
        sees_model: the attacker is given the returned model alone, of a linear method.
    """

    module: ModuleType
    parameters: object
    problem: Problem
    plan: Plan
    canaries: int
    beside: Mapping[str, object] = field(default_factory=dict)
    records: tuple[np.ndarray, np.ndarray] | None = None
    sees_model: bool = False

    @property
    def last_iterate_only(self) -> bool:
        """Whether the final model is the only release."""
        return any(event.kind.uneven for event in self.plan.events)

    @property
    def adjacency(self) -> str:
        """The adjacency under attack: "zero-out" where batches are shuffled, else "add-remove-one"."""
        return "zero-out" if any(event.sampling == "shuffle" for event in self.plan.events) else "add-remove-one"


class Rows(Subjects):
    """Canaries as one batch of rows that knows which subject each row belongs to.

    Args:
        present: which canaries.
        problem: says how many rows and positive labels a canary has.
        blank: the others' rows stay, and contribute nothing (zero-out adjacency, or so that places are the same in all
            runs); else they are not there.
        records: features (canaries, d) and classes (canaries,) of the canaries; None: canary i has feature i alone.
    """

    def __init__(self, present: np.ndarray, problem: Problem, blank: bool = False, records=None):
        who = np.arange(len(present)) if blank or not present.any() else np.flatnonzero(present)
        index = np.repeat(who, problem.unit_records)
        if records is None:
            features = np.zeros((len(index), problem.dim), np.float32)
            features[np.arange(len(index)), index] = _AMPLITUDE
            labels = np.full(len(features), heaviest(problem)[0])
        else:
            features, labels = records[0][index], records[1][index]
        features[~present[index]] = np.nan  # takes no part in anything; methods expect at least one row
        if not problem.exclusive:
            labels = np.zeros((len(features), problem.classes), np.int8)
            labels[:, np.argsort(_weights(problem), kind="stable")[-problem.positives :]] = 1
        super().__init__([(features, labels)], index)


def _weights(problem: Problem) -> np.ndarray:
    """(classes,) what a record of each class counts for."""
    return np.array(problem.class_weights[: problem.classes] or [1.0] * problem.classes)


def heaviest(problem: Problem) -> np.ndarray:
    """The classes whose records count for most: canaries of others would be weaker than a record can be."""
    weights = _weights(problem)
    return np.flatnonzero(weights == weights.max())


def game_of(
    name: str,
    parameters,
    problem: Problem,
    reads_public: bool = False,
    pack: int = PACK,
    sees_model: bool = False,
    start: str | None = None,
) -> Game:
    """The game on a method as a cell runs it, with the cell's n, classes and privacy budget.

    The learning rate, which costs no privacy, is made tiny: a model that learns a canary would stop to respond to it.

    Args:
        parameters, problem: the cell's.
        reads_public: the method reads public points: some are made up.
        pack: how many canaries take part in one training, where features stay apart: a number that no other axis of a
            release has. The more, the more runs a second, unless steps decompose matrices.
        sees_model: as of `Game`.
        start: the file of weights that a network's training starts from, as of its `prepare`.

    Raises:
        StudyError: a model alone is to be attacked of a method whose weights no feature has to itself.
    """
    module = methods.load(name)
    if sees_model and hasattr(module, "AUDITED_DIM"):
        raise StudyError(
            f"audit: sees: model is for linear methods, whose weights are of single features, not for {name!r}"
        )
    if isinstance(getattr(parameters, "learning_rate", None), int | float):
        parameters = replace(parameters, learning_rate=_LEARNING_RATE)
    canaries, dim = (1, module.AUDITED_DIM) if hasattr(module, "AUDITED_DIM") else (pack, pack)
    records: tuple[np.ndarray, np.ndarray] | None = None
    if getattr(module, "AUDITED_BY_CLASS", False) and problem.exclusive:
        canaries, dim = problem.classes, problem.classes + _BESIDE
        problem = replace(problem, class_weights=())  # of classes that count for less a canary would tell less
        records = _AMPLITUDE * np.eye(canaries, dim, dtype=np.float32), np.arange(canaries)
    if dim is not None:
        problem = replace(problem, shape=(dim, 1, 1) if len(problem.shape) == 3 else (dim,))
    points = np.random.default_rng(0).uniform(-1, 1, (_PUBLIC_POINTS, problem.dim)).astype(np.float32)
    beside: dict[str, object] = {"public": points} if reads_public else {}
    beside |= {"start": start} if start else {}
    plan = module.plan(parameters, problem)
    return Game(module, parameters, problem, plan, canaries, beside, records, sees_model)


def play(
    game: Game, runs: int, mode: str = "seeded", shared: bool = False, key: Sequence[object] = ()
) -> tuple[np.ndarray, np.ndarray]:
    """The attack statistic in `runs` runs with the canary and in as many without it.

    Noise is fresh in each run. With `shared` it is one vector for every row of a release (a control), and the attacker
    looks at differences between rows.

    Args:
        key: in mode "seeded" the same key plays the same game again; empty: one that nobody else has.
    """
    statistics: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    last: int | None = None  # the first run says how many releases there are: as many in all, by the plan
    key = key or (secrets.token_hex(16),)
    attack = _by_model if game.last_iterate_only else _by_transcript
    if game.sees_model and attack is _by_transcript:
        attack = partial(_by_weights, along=_added(game, mode, shared, key))
    rng = NoiseSource("seeded", "audit", *key).sampling("coins")
    for number in count():
        if min(sum(map(len, part)) for part in statistics) >= runs:
            break
        present = rng.random(game.canaries) < 0.5
        source = Watched(mode, shared, last, *key, number)
        statistic = attack(game, present, source)
        last = None if game.last_iterate_only or game.sees_model else len(source.transcript)
        statistics[0].append(statistic[present])
        statistics[1].append(statistic[~present])
    return np.concatenate(statistics[0])[:runs], np.concatenate(statistics[1])[:runs]


def trained(game: Game, present: np.ndarray, source: NoiseSource, records=None):
    """The fit of the method's training code on these canaries.

    Args:
        present: (canaries,) who takes part.
        records: as of `Rows`.
    """
    placed = game.adjacency == "zero-out" or any(event.bands for event in game.plan.events)  # groups are drawn by place
    rows = Rows(present, game.problem, placed, records or game.records)
    data = game.module.prepare(rows, game.parameters, game.problem, **game.beside)
    return game.module.fit(data, game.parameters, game.problem, game.plan, source)


def _by_transcript(game: Game, present: np.ndarray, source: Watched) -> np.ndarray:
    """(canaries,) log-likelihood ratio of each canary's presence."""
    everybody, nobody = Replay(source), Replay(source)
    for who, noise in ((present, source), (np.ones_like(present), everybody), (np.zeros_like(present), nobody)):
        with suppress(EnoughError):
            trained(game, who, noise)
    events = {event.name: event for event in game.plan.events}
    total = np.zeros(game.canaries)
    for parts in _steps(source.transcript, everybody.queries, nobody.queries):
        event = events[parts[0][0]]
        std = event.deviation
        inner = squared = np.zeros(game.canaries)
        for _, noisy, with_all, with_none in parts:
            shift, seen = with_all.astype(np.float64) - with_none, noisy.astype(np.float64) - with_none
            if source.shared:  # of one vector added to every row nothing is left along differences between rows
                if shift.ndim != 2 or parts[0][0] in source.symmetric:
                    continue  # there the vector is as long as the release: its noise would drown the others'
                shift, seen = shift - shift.mean(0), seen - seen.mean(0)
            apart = game.canaries, game.problem.dim
            inner = inner + per_canary(seen * shift, *apart) / std**2
            squared = squared + per_canary(shift**2, *apart) / std**2
        total += _log_ratio(event, inner - squared / 2)
    return total


def _log_ratio(event: Event, full: np.ndarray) -> np.ndarray:
    """Of one release, from that of a release in which the canary takes part for sure."""
    rate = event.sampling_rate
    if event.sampling == "none" or rate == 1:
        return full
    return np.logaddexp(np.log1p(-rate), np.log(rate) + full)


def _steps(transcript, with_all: Sequence, with_none: Sequence) -> Iterator[list[tuple]]:
    """The tensors of one release at a time: (name, noisy, query of all, query of none)."""
    for _, parts in groupby(zip(transcript, with_all, with_none, strict=True), lambda part: part[0][:2]):
        yield [(name, noisy, everybody, nobody) for (name, _, _, noisy), everybody, nobody in parts]


def per_canary(products: np.ndarray, canaries: int, dim: int) -> np.ndarray:
    """(canaries,) the sums of the elements of a release that belong to each canary; all elements where there is one.

    Of several they are the diagonal of a (dim, dim) matrix, else the axis of that length, or of one more (the last
    column is the bias, which belongs to none), and where features are mixed that of the classes.

    Raises:
        ValueError: there is no such axis, or more than one.
    """
    if canaries == 1:
        return products.sum().reshape(1)
    sizes = (dim, dim + 1) if {dim, dim + 1} & set(products.shape) else (canaries, canaries + 1)
    axes = [axis for axis, size in enumerate(products.shape) if size in sizes]
    if len(axes) == 2 and products.ndim == 2:
        return products.diagonal()[:canaries]
    if len(axes) != 1:
        raise ValueError(f"a release of shape {products.shape} does not say which part belongs to which canary")
    others = tuple(axis for axis in range(products.ndim) if axis != axes[0])
    return products.sum(axis=others)[:canaries]


def _by_model(game: Game, present: np.ndarray, source: NoiseSource) -> np.ndarray:
    """(canaries,) the published weights of each canary's feature, along what it adds to them without noise."""
    weights = {}
    for name, who in (("run", present), ("all", np.ones_like(present)), ("none", np.zeros_like(present))):
        noise = source if name == "run" else Silent(source.mode, *source.key)
        weights[name] = trained(game, who, noise).model.weights.astype(np.float64)
    moved = (weights["run"] - weights["none"]) * (weights["all"] - weights["none"])
    return per_canary(moved, game.canaries, game.problem.dim)


def _by_weights(game: Game, present: np.ndarray, source: NoiseSource, along: np.ndarray) -> np.ndarray:
    """(canaries,) the published weights of each canary's feature, (classes,), along what canaries add to them."""
    weights = trained(game, present, source).model.weights.astype(np.float64)
    return per_canary(weights * along[:, None], game.canaries, game.problem.dim)


def _added(game: Game, mode: str, shared: bool, key: Sequence[object]) -> np.ndarray:
    """(classes,) what a canary adds to the weights of its feature, over their variances, of pilot runs."""
    seen: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    rng = NoiseSource("seeded", "audit", *key).sampling("coins of pilot runs")
    for number in range(max(4, -(-_PILOT // game.canaries))):
        present = rng.random(game.canaries) < 0.5
        source = NoiseSource(mode, "audit", *key, "pilot", number, shared=shared)
        columns = trained(game, present, source).model.weights.astype(np.float64)[:, : game.canaries]
        seen[0].append(columns[:, present])
        seen[1].append(columns[:, ~present])
    with_canary, without = (np.concatenate(each, 1) for each in seen)
    variance = with_canary.var(1) + without.var(1)
    return (with_canary.mean(1) - without.mean(1)) / np.where(variance > 0, variance, np.inf)
