"""Training one cell for all its seeds: what the rules train_closed_form and train_stepped do."""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from dpstudy import methods
from dpstudy.errors import StudyError
from dpstudy.evaluation.metrics import evaluate
from dpstudy.features import shards
from dpstudy.files import sha256, write_json, write_table
from dpstudy.methods.problem import Plan, Problem
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.ledger import build_ledger, check_releases
from dpstudy.privacy.noise import NoiseSource
from dpstudy.progress import progress
from dpstudy.study.cells import Cell
from dpstudy.study.provenance import cell_fingerprint, library_hash, versions

OWN_DATA = ("image_folder", "image_table", "labels")
_log = logging.getLogger("dpstudy")
_NOT_HYPERPARAMETERS = ("method", "sanitise", "accounting", "tuned_on")


@dataclass(frozen=True)
class CellRequest:
    """One cell's public settings.

    Attributes:
        cell: which cell.
        options: the entry's hyper-parameters, overrides applied.
        dataset: reader, delta, unit and positives of the private data set.
        seeds: to train.
        noise: "seeded" or "secure".
        metrics: to report.
        not_accounted: what the study does outside the ledger, a sentence each.
        code: source files that the cell runs on.
        library: their hash when the study was laid out.
    """

    cell: Cell
    options: dict
    dataset: dict
    seeds: Sequence[int]
    noise: str
    metrics: Sequence[str]
    not_accounted: Sequence[str]
    code: Sequence[str]
    library: str


@dataclass(frozen=True)
class CellInputs:
    """Folders of feature shards, what de-duplication kept (or None), private sums (or None)."""

    train: str
    test: str
    kept: str | None = None
    statistics: str | None = None


@dataclass
class _Outcome:
    rows: list[dict] = field(default_factory=list)
    curve: list[tuple] = field(default_factory=list)
    first_model: object = None


def made_by(request: CellRequest, data: dict[str, str]) -> dict:
    """What made this cell; the summary compares it with today's config and library."""
    return {
        "config": cell_fingerprint(request.options, request.dataset, request.seeds, request.noise, request.metrics),
        "library": request.library,
        "data": data,
        "versions": versions(),
    }


def train_cell(request: CellRequest, inputs: CellInputs, outputs: dict[str, str]) -> None:
    """Train every seed, evaluate on the test split, and write model, metrics, ledger and (if asked for) curve.

    Args:
        outputs: paths under the keys model, metrics, ledger, and curve for stepped methods.

    Raises:
        StudyError: an unreachable epsilon, delta not below 1/n on own data, labels out of range, divergence; or the
            library was edited since the study was laid out, so that nobody could say what made the cell.
    """
    if library_hash(request.code) != request.library:
        raise StudyError(
            f"cell {request.cell.path}: the library was edited while the study ran; run the same command again"
        )
    manifest = shards.read_manifest(inputs.train)
    problem = _problem(request, manifest)
    method = methods.load(request.options["method"])
    hyper = {key: value for key, value in request.options.items() if key not in _NOT_HYPERPARAMETERS}
    parameters = methods.parameters(request.options["method"], hyper)
    plan = method.plan(parameters, problem)
    _log.info("plan: %s", plan)
    data = _training_data(method, parameters, problem, inputs)
    test = shards.load(inputs.test, kept=inputs.kept)
    outcome = _Outcome()
    for seed in progress(request.seeds, request.cell.path):
        _train_seed(
            request,
            method,
            parameters,
            problem,
            plan,
            data,
            test,
            manifest["classes"],
            seed,
            "curve" in outputs,
            outcome,
        )
    _write(request, inputs, outputs, problem, method, plan, hyper, outcome)


def _problem(request: CellRequest, manifest: dict) -> Problem:
    n, delta = manifest["rows"], float(request.dataset["delta"])
    if delta >= 1 / n:
        sentence = (
            f"datasets.{request.cell.dataset}.delta: {request.dataset['delta']} is not below 1/n = 1/{n}; "
            f"a guarantee that weak permits publishing a record outright; choose at most {0.1 / n:.1g}"
        )
        if request.dataset["reader"] in OWN_DATA:
            raise StudyError(sentence)
        _log.warning("%s", sentence)
    budget = Budget(request.cell.epsilon, delta, request.options["accounting"])
    return Problem(
        n,
        tuple(manifest["shape"]),
        len(manifest["classes"]),
        budget,
        request.dataset["positives"],
        request.options["sanitise"],
    )


def _training_data(method, parameters, problem: Problem, inputs: CellInputs):
    if inputs.statistics is not None:
        from dpstudy.methods.sufficient_statistics import Statistics

        return Statistics.load(inputs.statistics)
    tables = shards.iterate(inputs.train, kept=inputs.kept)
    return method.prepare(((table.features, table.labels) for table in tables), parameters, problem)


def _train_seed(request, method, parameters, problem, plan, data, test, classes, seed, stepped, outcome) -> None:
    started = time.monotonic()
    source = NoiseSource(request.noise, request.cell.path, "train", 0, seed)
    extra = {}
    if stepped:

        def monitor(step: int, model) -> None:
            scores = evaluate(model.scores(test.features), test.labels, list(request.metrics), classes)
            outcome.curve.extend((seed, step, "test", name, value) for name, value in scores.items())

        extra["monitor"] = monitor
    fitted = method.fit(data, parameters, problem, plan, source, **extra)
    check_releases(plan.events, source.drawn)
    seconds = time.monotonic() - started
    scores = evaluate(fitted.model.scores(test.features), test.labels, list(request.metrics), classes)
    outcome.rows.append({"seed": seed, "split": "test", **scores, "seconds": round(seconds, 3)})
    _log.info("seed %s: %s in %.1f s", seed, scores, seconds)
    if outcome.first_model is None:
        outcome.first_model = fitted.model


def _write(request, inputs, outputs, problem: Problem, method, plan: Plan, hyper, outcome: _Outcome) -> None:
    from dpstudy.evaluation.aggregate import aggregate

    mean, median, std = aggregate(outcome.rows)
    metrics = {
        "dataset": request.cell.dataset,
        "features": request.cell.features,
        "entry": request.cell.entry,
        "method": request.options["method"],
        "epsilon": request.cell.epsilon,
        "seeds": outcome.rows,
        "mean": mean,
        "median": median,
        "std": std,
        "hyperparameters": hyper | dict(plan.facts),
        "tuned_on": request.options["tuned_on"],
        "made_by": made_by(request, _data_hashes(inputs)),
    }
    ledger = build_ledger(
        plan.events,
        problem.budget,
        n=problem.n,
        unit=request.dataset["unit"],
        noise=request.noise,
        not_accounted=[*request.not_accounted, *_shuffle_caveat(plan, problem)],
        no_guarantee=None if problem.noised else _why_none(problem),
    )
    _check_documents(metrics, ledger, outputs)
    outcome.first_model.save(outputs["model"])
    if "curve" in outputs:
        _write_curve(outputs["curve"], outcome.curve, method, plan, problem)
    write_json(outputs["ledger"], ledger)
    write_json(outputs["metrics"], metrics)


def _data_hashes(inputs: CellInputs) -> dict[str, str]:
    paths = {"train": f"{inputs.train}/manifest.json", "test": f"{inputs.test}/manifest.json", "kept": inputs.kept}
    return {name: sha256(path)[:16] for name, path in paths.items() if path}


def _why_none(problem: Problem) -> str:
    if problem.sanitise == "clip":
        return "Contributions were clipped but no noise was added: there is no guarantee."
    return "Neither clipping nor noise was applied: there is no guarantee."


def _shuffle_caveat(plan: Plan, problem: Problem) -> list[str]:
    if not any(event.sampling == "shuffle" for event in plan.events):
        return []
    return [
        f"The noise was calibrated for Poisson sampling at epsilon {problem.budget.epsilon}, but batches were "
        "shuffled: what is certified is the epsilon of shuffled fixed batches, without amplification, under zero-out "
        "adjacency."
    ]


def _check_documents(metrics: dict, ledger: dict, outputs: dict[str, str]) -> None:
    from dpstudy.study.schema import check

    check(metrics, "metrics", outputs["metrics"])
    check(ledger, "ledger", outputs["ledger"])


def _write_curve(path: str, rows: list[tuple], method, plan: Plan, problem: Problem) -> None:
    """seed, step, epsilon_spent (null without noise), split, metric, value."""
    import pyarrow as pa

    from dpstudy.privacy.accounting import certify

    steps = sorted({row[1] for row in rows})
    spent = {step: None for step in steps}
    if plan.events:
        spent = {step: certify(method.spent(plan, step), problem.budget.delta).epsilon for step in steps}
    columns = list(zip(*rows, strict=True))
    table = pa.table(
        {
            "seed": pa.array(columns[0], pa.int64()),
            "step": pa.array(columns[1], pa.int64()),
            "epsilon_spent": pa.array([spent[step] for step in columns[1]], pa.float64()),
            "split": pa.array(columns[2], pa.string()),
            "metric": pa.array(columns[3], pa.string()),
            "value": pa.array(np.asarray(columns[4], dtype=np.float64)),
        }
    )
    write_table(path, table)
