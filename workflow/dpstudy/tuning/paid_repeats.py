"""Private tuning by repeat and select: the best of a secret, geometric number of trainings.

Papernot and Steinke 2022, Theorem 2.

Each trial draws a setting, trains with it on the train split, and scores on the validation split with Gaussian noise;
what the trial of the highest noisy score released is released, and nothing of the others, not even how many there were.
A record of the train split is touched by the training (the score is a function of the model), one of the validation
split by the score alone. For each part the noise of one trial is what the selection leaves of the whole budget.

All settings must cost the same: a bound for each of several mechanisms is none for a random one among them. Settings
are drawn anew in each trial, from the noise source: from a known sequence the chosen setting would tell how many trials
there were.
"""

import contextlib
import math
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from dpstudy.cell.inputs import CellInputs, CellRequest
from dpstudy.cell.monitor import holds_spent
from dpstudy.config.space import Value, combinations, draw, grid
from dpstudy.core.errors import StudyError
from dpstudy.methods.problem import Fit, Plan, Problem
from dpstudy.models import Model
from dpstudy.privacy.accounting import certify
from dpstudy.privacy.events import Event, known_to_renyi, unproved
from dpstudy.privacy.gaussian import epsilon_of
from dpstudy.privacy.ledger import check_run
from dpstudy.privacy.noise import NoiseSource
from dpstudy.tuning.failures import TrialError, failures_of_the_trial
from dpstudy.tuning.paid import PaidTuning, presumed, touching

SCORE = "validation score"
_TOLERANCE = 1e-3  # of logarithms
_FAR = 30.0
_MOST_SAVED = 0.25  # of the target: between two large Renyi orders epsilon may jump by a fifth


@dataclass(frozen=True)
class _Run:
    noisy_score: float
    setting: dict[str, Value]
    model: Model | None
    curve: list[tuple]
    source: NoiseSource
    seconds: float
    deviations: dict[str, Counter[float]] | None  # of its noise, in the ledger's units, if those are not its own


class Tuning(PaidTuning):
    """Private tuning by repeat and select; see the module."""

    def __init__(self, request: CellRequest, inputs: CellInputs):
        super().__init__(request, inputs)
        self._grid = grid(self.tuning["space"]) if self.tuning["sampler"] == "grid" else None
        self._mean = float(self.tuning["trials"])

    def plan(self, parameters, problem: Problem) -> Plan:
        """The planned releases of the selected trial, with the cost of selecting it.

        Raises:
            StudyError: settings cost differently, or nothing is left for a trial.
        """
        self._once: tuple[Event, ...] = ()
        settings = self._grid or combinations(self.tuning["space"])
        if not problem.noised:
            self._problem, self._std, self._in_units = self.on_train(problem), 0.0, False
            return Plan((), {}, {"mean_trials": self._mean})
        target, delta = problem.budget.target, problem.budget.delta
        multiplier = self._score_multiplier(target, delta)
        self._std = multiplier * problem.unit_records
        self._problem, plan = self._calibrated(settings[0], problem)
        self._once = (*plan.events, Event(SCORE, "gaussian", multiplier, float(problem.unit_records)))
        plans = [self._planned(each)[1] for each in settings]
        sensitivities = {tuple(event.sensitivity for event in each.events) for each in plans}
        self._in_units = len(sensitivities) > 1
        known = _comparable(plan.events) if self._in_units else plan.events
        trained = touching(replace(plan, events=known), part="train", trials=self._mean)
        score = replace(self._once[-1], part="validation", trials=self._mean)
        facts = {"mean_trials": self._mean, "epsilon_trial": self._problem.budget.target}
        return Plan((*trained, score), plan.noise, facts, presumed(plans))

    def _score_multiplier(self, target: float, delta: float) -> float:
        """The noise multiplier of a trial's score."""

        def saved(logarithm: float) -> float:
            score = Event(SCORE, "gaussian", math.exp(logarithm), 1.0, trials=self._mean)
            return target - certify([score], delta).epsilon

        return math.exp(_least(saved, 0.0, target))

    def _calibrated(self, setting: Mapping[str, Value], problem: Problem) -> tuple[Problem, Plan]:
        """The train split's problem for a trial, and its plan at a setting: the largest epsilon that repeats afford."""
        target, delta = problem.budget.target, problem.budget.delta
        parameters, tried = self.parameters(setting), {}

        def saved(logarithm: float) -> float:
            """Of the budget, where a trial's epsilon is exp(-logarithm)."""
            if logarithm not in tried:
                posed = self.on_train(problem, math.exp(-logarithm))
                tried[logarithm] = posed, self.method.plan(parameters, posed)
                _refuse_unbounded(tried[logarithm][1].events)
            events = [replace(event, trials=self._mean) for event in tried[logarithm][1].events]
            return target - certify(events, delta).epsilon

        # What a full-batch Gaussian run could have; nearly the same for others.
        guess = -math.log(epsilon_of(1 / self._score_multiplier(target, delta), delta))
        whole_steps = getattr(parameters, "noise_multiplier", None) is not None  # what they leave cannot be spent
        return tried[_least(saved, guess, math.inf if whole_steps else target)]

    def _planned(self, setting: Mapping[str, Value]) -> tuple[object, Plan]:
        """The parameters and the plan of a trial.

        Raises:
            StudyError: it costs otherwise than the trial that the noise was calibrated for.
        """
        parameters = self.parameters(setting)
        plan = self.method.plan(parameters, self._problem)
        if self._once and _comparable(plan.events) != _comparable(self._once[:-1]):
            raise StudyError(
                f"tuning.pay: repeats takes settings whose releases cost alike, and those of {setting} do not (what "
                "decides on steps, sampling or noise multipliers); leave that hyper-parameter out of the space"
            )
        return parameters, plan

    def fit(self, data, parameters, problem: Problem, plan: Plan, source: NoiseSource, monitor=None) -> Fit:
        """Run the trials and return the best; `data` and `parameters` are ignored.

        Raises:
            StudyError: the best trial failed, as far as noise lets that be known.
        """
        number = int(source.part("trials").sampling("number").geometric(1 / self._mean))
        best = self._run(source.part("trial", 0), monitor)
        for trial in range(1, number):
            run = self._run(source.part("trial", trial), monitor)
            if run.noisy_score > best.noisy_score:
                best = run
        self.chosen.append(best.setting)
        self.seconds = best.seconds
        source.adopt(best.source, best.deviations)
        if best.model is None:
            raise StudyError(f"tuning: training failed with the setting that was chosen, {best.setting}")
        if monitor:
            monitor.rows.extend(best.curve)
        return Fit(best.model)

    def _run(self, source: NoiseSource, monitor) -> _Run:
        started, watching = time.monotonic(), None
        generator = source.sampling("setting")
        if self._grid:
            setting = self._grid[int(generator.integers(len(self._grid)))]
        else:
            setting = draw(self.tuning["space"], generator)
        trained, plan = self._planned(setting)  # whether this succeeds depends on no private record
        if monitor:
            watching = monitor.anew(holds_spent(self.method, plan, source))
        extra = {"monitor": watching} if watching else {}
        model: Model | None = None
        right = 0.0
        with contextlib.suppress(TrialError), failures_of_the_trial():
            data = self.prepared.of(trained, self._problem)
            started = time.monotonic()  # without preparation, which would reveal whether the first trial won
            trained_model = self.method.fit(data, trained, self._problem, plan, source, **extra).model
            right = self.score(trained_model, self._problem)
            model = trained_model
        noisy = float(source.released(SCORE, np.array([right]), self._std)[0]) if self._once else right
        if model is not None:
            check_run((*plan.events, *self._once[-1:]), source)
        curve = watching.rows if watching else []
        seconds = time.monotonic() - started
        return _Run(noisy, dict(setting), model, curve, source, seconds, _in_units(plan) if self._in_units else None)

    def spent(self, plan: Plan, step: int) -> tuple[Event, ...]:
        """The events after `step` steps of the selected trial."""
        trained = self.method.spent(replace(plan, events=plan.events[:-1]), step)
        return (*trained, plan.events[-1])


def _comparable(events: tuple[Event, ...]) -> tuple[Event, ...]:
    """The events as far as they cost privacy: sensitivities in units of their own."""
    return tuple(replace(event, sensitivity=1.0) for event in events)


def _in_units(plan: Plan) -> dict[str, Counter[float]]:
    """The noise of a trial that was held against its own plan, as a ledger of `_comparable` events has it."""
    counts: dict[str, Counter[float]] = defaultdict(Counter)
    for event in plan.events:
        counts[event.name][event.noise_multiplier] += event.count
    return counts


def _refuse_unbounded(events: tuple[Event, ...]) -> None:
    if unproved(events) or not known_to_renyi(events) or any(event.sampling == "shuffle" for event in events):
        raise StudyError("tuning.pay: repeats needs releases that Renyi DP bounds, and it bounds not all of these")


def _least(saved: Callable[[float], float], guess: float, target: float) -> float:
    """The least number, to a thousandth, at which an increasing function is not negative.

    Raises:
        StudyError: there is none: choosing alone costs more than the budget; or far less than `target` is spent there.
    """
    from scipy.optimize import brentq

    low = high = guess
    width = _TOLERANCE
    if saved(guess) >= 0:
        while saved(low) >= 0:
            low, width = low - width, 4 * width
    else:
        while saved(high) < 0:
            high, width = high + width, 4 * width
            if high > _FAR:
                raise StudyError("tuning.pay: repeats: choosing the best of several runs alone costs more than epsilon")
    root = brentq(saved, low, high, xtol=_TOLERANCE / 4)
    while saved(root) < 0:
        root += _TOLERANCE / 4
    if saved(root) > _MOST_SAVED * target:
        raise StudyError("tuning.pay: repeats: no accountant has a bound near epsilon at so small a delta; raise delta")
    return root
