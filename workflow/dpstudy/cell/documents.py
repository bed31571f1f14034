"""The documents of a trained cell: run.json, ledger.json, the training curve, and the audit of a claimed guarantee."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np

from dpstudy.cell.bound import name_of_cell
from dpstudy.cell.inputs import CellRequest
from dpstudy.config.tuned import tuned_on, unpaid_choices
from dpstudy.core.files import write_json, write_table
from dpstudy.methods.problem import Plan, Problem
from dpstudy.privacy.audit import verdict
from dpstudy.privacy.events import unproved
from dpstudy.privacy.ledger import SHARED_NOISE, build_ledger


@dataclass(frozen=True)
class CellTask:
    """The task of training one cell, fixed before its first seed.

    Attributes:
        method: its module, or what stands for it where tuning is paid for.
        parameters: of the method; None where tuning is paid for, which has settings of its own.
        hyper: hyper-parameters, as run.json has them.
        classes: names.
        multi_label: a record may have several.
        made_by: hashes of what made the cell.
    """

    request: CellRequest
    method: ModuleType | Any
    parameters: Any
    problem: Problem
    plan: Plan
    hyper: Mapping
    classes: list[str]
    multi_label: bool
    made_by: dict


@dataclass
class Outcome:
    """The results of all seeds: rows of run.json, test scores, the training curve, and the first seed's model."""

    rows: list[dict] = field(default_factory=list)
    scores: dict[int, np.ndarray] = field(default_factory=dict)  # seed -> (n, m)
    curve: list[tuple] = field(default_factory=list)
    first_model: Any = None  # each method has a class of its own
    repeatable: bool = False  # no randomness was used: every seed gives the same

    def repeat(self, seed: int) -> None:
        """Add `seed` with the first seed's results."""
        first = self.rows[0]["seed"]
        self.rows.append(self.rows[0] | {"seed": seed, "seconds": 0.0})
        self.scores[seed] = self.scores[first]
        self.curve.extend((seed, *row[1:]) for row in list(self.curve) if row[0] == first)


def run_of(task: CellTask, tuning: dict, outcome: Outcome) -> dict:
    """The content of a cell's run.json: everything in metrics.json except scores.

    Args:
        tuning: what its search found; empty: it had none.
    """
    request = task.request
    run = {
        "dataset": request.cell.dataset,
        "features": request.cell.features,
        "entry": request.cell.entry,
        "method": request.options["method"],
        "epsilon": request.cell.epsilon,
        "classes": task.problem.classes,
        "parameters": outcome.first_model.parameters,
        "seeds": outcome.rows,
        "hyperparameters": {**task.hyper, **task.plan.facts},
        "tuned_on": tuned_on(request.options, tuning),
        "made_by": task.made_by,
    }
    return run | {"tuning": tuning} if tuning else run


def ledger_of(task: CellTask, tuning: dict) -> dict:
    """The content of a cell's ledger.json: each seed's releases, the certified epsilon, and what is not counted."""
    request = task.request
    outside = [*request.dataset.get("not_accounted", ()), *request.not_accounted, *task.plan.not_accounted]
    ledger = build_ledger(
        task.plan.events,
        task.problem.budget,
        n=task.problem.n,
        unit=request.dataset["unit"],
        noise=request.noise,
        not_accounted=[*outside, *unpaid_choices(request.options["tuned_on"], tuning)],
        no_guarantee=why_none(request, task.problem),
        bounds=_bounds(task),
    )
    return ledger | {"cell": name_of_cell(request.cell, seed=request.seeds[0])}


def _bounds(task: CellTask) -> dict:
    """What of a unit counts at most, as the ledger has it."""
    dataset, problem = task.request.dataset, task.problem
    bounds: dict[str, int | str] = {"records": problem.unit_records} if dataset["unit"] == "subject" else {}
    bounds |= {"contributions": "average"} if problem.averaged else {}
    bounds |= {"persons": task.request.persons} if task.request.persons else {}
    if task.multi_label:
        bounds |= {"positives": problem.positives, "beyond": dataset.get("beyond", "refuse")}
    return bounds


def why_none(request: CellRequest, problem: Problem) -> str | None:
    """The reason why a cell has no guarantee, in a sentence; None where it may have one."""
    if problem.noised:
        return SHARED_NOISE if request.options.get("shared_noise") else None
    if problem.sanitise == "clip":
        return "Contributions were clipped but no noise was added: there is no guarantee."
    return "Neither clipping nor noise was applied: there is no guarantee."


def check_documents(run: dict, ledger: dict, outputs: Mapping[str, str]) -> None:
    """Validate run.json and ledger.json against their schemas before anything is written.

    Raises:
        StudyError: one does not fit.
    """
    from dpstudy.schema.reading import check

    check(run, "run", outputs["run"])
    check(ledger, "ledger", outputs["ledger"])


def write_audit(path: str, found: list[dict], claimed: str) -> None:
    """Write the audit.json of a method that attacks its authors' claimed epsilon.

    Raises:
        StudyError: it does not fit its schema.
    """
    from dpstudy.schema.reading import check

    content = {"audits": found, "epsilon_certified": None, "verdict": verdict(found, claimed)}
    check(content, "audit", path)
    write_json(path, content)


def write_curve(path: str, task: CellTask, rows: Sequence[tuple]) -> None:
    """Write a training curve, each point with the epsilon spent by then (null without noise or proof).

    Args:
        rows: (seed, step, split, metric, value).
    """
    import pyarrow as pa

    from dpstudy.core.columns import numbers, strings
    from dpstudy.privacy.accounting import certify

    steps, plan = sorted({row[1] for row in rows}), task.plan
    spent: dict[int, float | None] = dict.fromkeys(steps)
    if plan.events and not unproved(plan.events):
        delta = task.problem.budget.delta
        spent = {step: certify(task.method.spent(plan, step), delta).epsilon for step in steps}
    columns = list(zip(*rows, strict=True)) or [()] * 5  # no point: no metric fits the labels, as scoring will say
    arrays = {
        "seed": numbers(columns[0], np.int64),
        "step": numbers(columns[1], np.int64),
        "epsilon_spent": numbers([spent[step] for step in columns[1]], np.float64),
        "split": strings(columns[2]),
        "metric": strings(columns[3]),
        "value": numbers(columns[4], np.float64),
    }
    write_table(path, pa.table(arrays))
