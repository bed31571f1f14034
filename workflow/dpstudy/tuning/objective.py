"""The objective of a search: train on the train split as a cell would, and score on the validation split."""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from dpstudy import methods
from dpstudy.cell.inputs import CellInputs, CellRequest, pose_problem
from dpstudy.config.space import Value
from dpstudy.core.errors import StudyError
from dpstudy.evaluation.evaluate import evaluate
from dpstudy.methods.problem import Plan, Problem
from dpstudy.models.linear import LinearModel
from dpstudy.privacy.ledger import check_run
from dpstudy.schema.methods import hyperparameters
from dpstudy.tuning.failures import failures_of_the_trial
from dpstudy.tuning.prepared import Prepared, asked

_PHASE = "tune"
_HASH_BYTES = 8


class Objective:
    """The validation metric of a setting.

    All trials share what does not depend on it:

    - the data in memory, prepared once, or once for each value of the method's `prepared_by(parameters)`, of which the
      latest is kept;
    - for a method with `release` and `solve`, the noisy release: one for equal plans (and equal
      `released_by(parameters)`), so that a trial is a solve. The latest is kept.

    Args:
        request: the cell.
        inputs: what is learned from, and scored on.
        checkpoint: where a trial that takes long keeps its checkpoint, of this very search; None: nowhere.

    Raises:
        StudyError: a file is missing or damaged, or delta is not below 1/n on own data.
    """

    def __init__(self, request: CellRequest, inputs: CellInputs, checkpoint: Path | None = None):
        self._request, self._checkpoint = request, checkpoint
        self._method = methods.load(request.options["method"])
        manifests = inputs.manifests()
        self._problem = pose_problem(request, manifests)
        self._classes = manifests[0]["classes"]
        self._held_out = inputs.held_out_rows()
        records = request.options["tuning"].get("records", self._problem.n)
        self._share = min(1.0, records / self._problem.n)
        self._rows = _some_rows(inputs, self._share) if self._share < 1 else None
        self._prepared = Prepared(self._method, inputs, self._rows)
        self._released: tuple[object, object] | None = None

    def __call__(self, number: int, suggestion: Mapping[str, Value]) -> float:
        """The first of the study's metrics, on the validation split.

        Raises:
            TrialError: this setting does not work.
            StudyError: no setting can: a file is missing or damaged, labels are out of range.
        """
        fixed = hyperparameters(self._request.options)
        with failures_of_the_trial():
            parameters = methods.parameters(self._request.options["method"], fixed | dict(suggestion))
            problem, plan = self._fewer(self._method.plan(parameters, self._problem))
        data = self._prepared.of(parameters, problem)
        with failures_of_the_trial():
            return self._score(self._train(number, data, parameters, problem, plan))

    def _score(self, model: LinearModel) -> float:
        metric = self._request.metrics[0]
        values = evaluate(model.scores(self._held_out.features), self._held_out.labels, [metric], self._classes)
        if metric not in values:
            raise StudyError(
                f"evaluation.metrics: {metric!r} has no value for {len(self._classes)} classes and the labels of the "
                "validation split to tune on"
            )
        return values[metric]

    def _train(self, number: int, data, parameters, problem: Problem, plan: Plan) -> LinearModel:
        if hasattr(self._method, "release") and hasattr(self._method, "solve"):
            return self._method.solve(self._release(data, parameters, plan), parameters, plan)
        source = self._request.noise_source(_PHASE, number, 0)
        keeper = self._keeper(number, parameters)
        fitted = self._method.fit(data, parameters, problem, plan, source, **({"keeper": keeper} if keeper else {}))
        check_run(plan.events, source)
        return fitted.model

    def _keeper(self, number: int, parameters):
        """The checkpoint of a trial whose method has some; those of earlier trials are of no use to it."""
        if self._checkpoint is None or not hasattr(parameters, "checkpoint_minutes"):
            return None
        from dpstudy.methods.keeper import Keeper

        made_by = {"trial": number, "parameters": repr(parameters)}
        return Keeper(self._checkpoint, made_by, parameters.checkpoint_minutes, parameters.checkpoint_steps)

    def _release(self, data, parameters, plan: Plan):
        key = plan.events, plan.noise, asked(self._method, "released_by", parameters)
        if self._released is None or self._released[0] != key:
            # named by the releases, so that noise is equal for equal plans, in whichever trial, and differs otherwise
            source = self._request.noise_source(_PHASE, f"{key}", 0)
            released = self._method.release(data, parameters, plan, source)
            check_run(plan.events, source)
            self._released = key, released
        return self._released[1]

    def _fewer(self, plan: Plan) -> tuple[Problem, Plan]:
        """The problem and the plan for a share of the records: sums shrink by it, and so does their noise."""
        if self._rows is None:
            return self._problem, plan
        for event in plan.events:
            if event.sampling != "none" or event.name not in plan.noise:
                raise StudyError(f"tuning.records: the release {event.name!r} cannot be scaled to fewer records")
        problem = replace(self._problem, n=max(1, round(self._problem.n * self._share)))
        events = tuple(event.scaled(self._share) for event in plan.events)  # what a record adds does not shrink
        return problem, replace(plan, events=events, noise={k: std * self._share for k, std in plan.noise.items()})


def _some_rows(inputs: CellInputs, share: float) -> list[tuple[np.ndarray, np.ndarray]]:
    """(features, labels) of the records whose id's hash falls below `share`: a per-record rule."""
    parts = []
    for table in inputs.training_tables():
        some = table.take(np.fromiter((_place(name) < share for name in table.ids), bool, len(table)))
        parts.append((some.features, some.labels))
    return parts


def _place(name: str) -> float:
    """A number in [0, 1) that depends on the id alone."""
    digest = hashlib.sha256(f"{_PHASE}\0{name}".encode()).digest()
    return int.from_bytes(digest[:_HASH_BYTES], "big") / 2.0 ** (8 * _HASH_BYTES)
