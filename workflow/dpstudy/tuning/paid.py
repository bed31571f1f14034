"""Private hyper-parameter tuning, paid for by the budget: what its two methods share.

    choice   one noisy release serves all settings, and one of them is chosen by the exponential mechanism on the
             validation split (paid_choice.py);
    repeats  a secret, geometric number of whole trainings, the best of which is released (paid_repeats.py).

Both train on the train split and score on the validation split. A unit is in one of the two, by a hash of its own, so
that what touches one costs nothing on the other: the guarantee is the worse of the two parts' (parallel composition).
"""

import importlib
from collections.abc import Iterable, Mapping
from dataclasses import replace

from dpstudy import methods
from dpstudy.cell.inputs import CellInputs, CellRequest, units
from dpstudy.config.space import Value
from dpstudy.core.errors import StudyError
from dpstudy.methods.problem import Plan, Problem
from dpstudy.models.alone import scores_alone
from dpstudy.privacy.budget import Budget, spelled
from dpstudy.privacy.events import Event
from dpstudy.schema.methods import hyperparameters
from dpstudy.tuning.held_out import how_right
from dpstudy.tuning.prepared import Prepared


class PaidTuning:
    """A method that tunes itself privately: it plans, fits, and remembers the chosen settings.

    Args:
        request: its options hold `tuning`.
        inputs: `train` begins with the train split, `validation` is where settings are scored.

    Attributes:
        chosen: the setting of each seed that was fitted.
        seconds: what the released run of the latest seed took; None: all that there was. How long all of a secret
            number of runs took would tell that number.

    Raises:
        StudyError: a file is missing or damaged.
    """

    def __init__(self, request: CellRequest, inputs: CellInputs):
        self.method = methods.load(request.options["method"])
        self.tuning = request.options["tuning"]
        self.chosen: list[dict[str, Value]] = []
        self.seconds: float | None = None
        if inputs.validation is None:
            raise StudyError("tuning.pay: settings are scored on a validation split, and there is none")
        self._name = request.options["method"]
        self._fixed = hyperparameters(request.options)
        first = replace(inputs, train=inputs.train[:1], statistics=inputs.statistics[:1])
        self._units = units(first.manifests()[:1], request.dataset["unit"])
        self.prepared = Prepared(self.method, first)
        self._held_out = replace(inputs, held_out=inputs.validation).held_out_rows()

    @property
    def summary(self) -> dict:
        """The entry of metrics.json on the chosen settings."""
        return {"pay": self.tuning["pay"], "chosen": self.chosen}

    def parameters(self, setting: Mapping[str, Value]):
        """The method's parameters at a setting.

        Raises:
            StudyError: it has no such parameters.
        """
        return methods.parameters(self._name, self._fixed | dict(setting))

    def on_train(self, problem: Problem, epsilon: float | None = None) -> Problem:
        """The problem of the train split alone, at the cell's epsilon or a smaller one."""
        budget = problem.budget if epsilon is None else Budget(spelled(epsilon), problem.budget.delta)
        return replace(problem, n=self._units, budget=budget)

    def score(self, model, problem: Problem) -> float:
        """The score of a model on the validation split (`how_right`).

        Where sums must be exact a record adds what depends on it alone.
        """
        features = self._held_out.features
        scores = scores_alone(model, features) if problem.exact else model.scores(features)
        return how_right(scores, self._held_out.labels)


def load(request: CellRequest, inputs: CellInputs) -> PaidTuning:
    """The private tuning method that a cell's `tuning.pay` names.

    Raises:
        StudyError: as of `PaidTuning`.
    """
    return importlib.import_module(f"dpstudy.tuning.paid_{request.options['tuning']['pay']}").Tuning(request, inputs)


def touching(plan: Plan, **where) -> tuple[Event, ...]:
    """The plan's events, marked with the part of the records, or the number of trials, that they belong to."""
    return tuple(replace(event, **where) for event in plan.events)


def presumed(plans: Iterable[Plan]) -> tuple[str, ...]:
    """What the events of any of these plans presume, each sentence once: of settings one may be chosen as another."""
    return tuple(dict.fromkeys(sentence for plan in plans for sentence in plan.not_accounted))
