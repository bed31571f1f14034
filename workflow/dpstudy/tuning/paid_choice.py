"""Private tuning by choice: one noisy release serves every setting, and the exponential mechanism chooses one.

For a method whose settings are functions of what it released (`release` and `solve`). The train split pays for the
release, the validation split for the choice, each the whole budget: a unit is in one of the two. With `retrain`, all
records are released once more, for the chosen setting:

    train:       mu^2 = `share` for the first release, the rest for the second;
    validation:  the second release, and a choice as sharp as the rest of the budget allows.
"""

import contextlib
import math
from dataclasses import replace

import numpy as np

from dpstudy.cell.inputs import CellInputs, CellRequest, training_data
from dpstudy.config.space import draw, grid
from dpstudy.core.errors import StudyError
from dpstudy.methods.checks import finite
from dpstudy.methods.problem import Fit, Plan, Problem
from dpstudy.privacy.events import EXPONENTIAL, Event
from dpstudy.privacy.gaussian import composed_mu, epsilon_of, mu_of
from dpstudy.privacy.noise import NoiseSource
from dpstudy.privacy.selection import choose, largest_choice
from dpstudy.tuning.failures import TrialError, failures_of_the_trial
from dpstudy.tuning.paid import PaidTuning, presumed, touching
from dpstudy.tuning.prepared import asked

CHOICE = "choice"
_BELOW = 1 - 1e-12  # a choice stays within its epsilon after rounding


class Tuning(PaidTuning):
    """Private tuning by the exponential mechanism; see the module."""

    def __init__(self, request: CellRequest, inputs: CellInputs):
        super().__init__(request, inputs)
        space, seed = self.tuning["space"], np.random.default_rng(self.tuning["seed"])
        listed = self.tuning["sampler"] == "grid"
        self.candidates = grid(space) if listed else [draw(space, seed) for _ in range(self.tuning["trials"])]
        self._all = inputs if self.tuning["retrain"] else None

    def plan(self, parameters, problem: Problem) -> Plan:
        """The planned releases and choice.

        Raises:
            StudyError: settings ask for releases that differ, or cannot share the budget.
        """
        self._problem, self._again, self._epsilon = self.on_train(problem), problem, math.inf
        if problem.noised:
            self._divide(problem)
        self._plan = self._common_plan(self._problem)
        self._second = self._common_plan(self._again) if self._all else None
        facts = {"candidates": len(self.candidates), **self._plan.facts}
        if not problem.noised:
            return Plan((), self._plan.noise, facts)
        events = touching(self._plan, part="train")
        if self._second:
            events += self._second.events
            target, delta = problem.budget.target, problem.budget.delta
            self._epsilon = largest_choice(composed_mu(self._second.events), target, delta)
            if not self._epsilon:
                raise StudyError("tuning.retrain: the second release leaves nothing for the choice; raise `share`")
        self._epsilon *= _BELOW
        facts["epsilon_choice"] = self._epsilon
        choice = Event(CHOICE, EXPONENTIAL, 1 / self._epsilon, float(problem.unit_records), part="validation")
        released = (plan for plan in (self._plan, self._second) if plan)
        return Plan((*events, choice), self._plan.noise, facts, presumed(released))

    def _divide(self, problem: Problem) -> None:
        """The budgets of the releases; without a second one each part of the records has all of it."""
        target, delta = problem.budget.target, problem.budget.delta
        self._epsilon = target
        if self._all:
            mu, share = mu_of(target, delta), self.tuning["share"]
            self._problem = self.on_train(problem, epsilon_of(mu * math.sqrt(share), delta))
            second = self.on_train(problem, epsilon_of(mu * math.sqrt(1 - share), delta)).budget
            self._again = replace(problem, budget=second)

    def _common_plan(self, problem: Problem) -> Plan:
        """The plan that all settings share."""
        first, plans = None, []
        for setting in self.candidates:
            parameters = self.parameters(setting)
            plan = self.method.plan(parameters, problem)
            plans.append(plan)
            key = plan.events, plan.noise, asked(self.method, "released_by", parameters)
            first = first or key
            if key != first:
                raise StudyError(
                    f"tuning.pay: choice takes settings of one noisy release, and {setting} needs another one than "
                    f"{self.candidates[0]}; leave that hyper-parameter out, or set pay: repeats"
                )
        if not plans:
            raise StudyError("tuning.pay: choice has no setting to choose; give `space` one at least")
        return replace(plans[0], not_accounted=presumed(plans))

    def fit(self, data, parameters, problem: Problem, plan: Plan, source: NoiseSource) -> Fit:
        """Release, choose and solve; `data` and `parameters` are ignored."""
        settings = [self.parameters(setting) for setting in self.candidates]
        statistics = self.prepared.of(settings[0], self._problem)
        released = self.method.release(statistics, settings[0], self._plan, source)
        scores = [self._score_at(released, setting) for setting in settings]
        if problem.noised:
            index = source.chosen(CHOICE, scores, self._epsilon / problem.unit_records)
        else:
            index = choose(scores, math.inf, 0)
        self.chosen.append(dict(self.candidates[index]))
        plan = self._plan
        if self._second and self._all:
            again, plan = source.part("retrain"), self._second
            everything = training_data(self.method, settings[index], self._again, self._all)
            released = self.method.release(everything, settings[index], plan, again)
            source.adopt(again)
        return Fit(finite(f"the chosen setting {self.chosen[-1]}", self.method.solve(released, settings[index], plan)))

    def _score_at(self, released, parameters) -> float:
        """A setting that does not work is right on no record."""
        with contextlib.suppress(TrialError), failures_of_the_trial():
            return self.score(self.method.solve(released, parameters, self._plan), self._problem)
        return 0.0
