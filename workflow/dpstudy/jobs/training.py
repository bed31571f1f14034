"""The job that trains a cell for all its seeds (the rules train_*)."""

import functools
import importlib
import logging
import time
from collections.abc import Callable, Mapping

from dpstudy import methods
from dpstudy.cell.bound import hashes, name_of_cell
from dpstudy.cell.documents import (
    CellTask,
    Outcome,
    check_documents,
    ledger_of,
    run_of,
    why_none,
    write_audit,
    write_curve,
)
from dpstudy.cell.inputs import CellInputs, CellRequest, TrainingRows, pose_problem, training_data
from dpstudy.cell.monitor import Monitor, holds_spent
from dpstudy.cell.paid_training import (
    begin,
    checkpoint_of,
    failure_paid,
    pay,
    remove_checkpoint,
    resumed,
    unbooked_forgotten,
)
from dpstudy.config.tuned import CALIBRATION, PAID_TUNING, PUBLIC, PUBLIC_CALIBRATION, pays
from dpstudy.core.allocator import keep_freed_memory
from dpstudy.core.errors import StudyError
from dpstudy.core.files import write_json, write_table
from dpstudy.core.progress import progress
from dpstudy.evaluation.on_training import accuracy_on
from dpstudy.evaluation.score_file import score_table
from dpstudy.features.shards import FeatureTable
from dpstudy.methods.problem import Fit, Plan, Problem, check_fit, check_plan
from dpstudy.models.probabilities import calibration_of
from dpstudy.privacy.ledger import build_ledger, check_run
from dpstudy.privacy.noise import NoiseSource
from dpstudy.provenance.hashes import origin_of_scores, versions
from dpstudy.schema.methods import hyperparameters, is_beyond_target
from dpstudy.tuning.trials import Choice, best_trial

_log = logging.getLogger("dpstudy")


def made_by(request: CellRequest, data: dict[str, str]) -> dict:
    """The hashes and versions of what trained this cell, which the summary compares with the current ones.

    Of a seed with a job of its own, which secure noise pays for, also the hash that a run knows it again by.
    """
    made = {"config": request.fingerprint, "library": request.library, "data": data, "versions": versions()}
    return made | ({"deciding": request.deciding} if request.checkpoint and request.spending else {})


def settled(request: CellRequest, inputs: CellInputs) -> tuple[dict, Choice | None]:
    """The hyper-parameters that a cell trains with, and the search's choice that they come from, or None.

    Every process that shares a training must ask for them here.
    """
    hyper = hyperparameters(request.options)
    if not inputs.trials:
        return hyper, None
    choice = best_trial(inputs.trials, request.options["tuning"]["space"])
    return hyper | choice.hyperparameters, choice


def method_of(request: CellRequest, inputs: CellInputs):
    """The method of a cell, wrapped where its scores are calibrated.

    Every process that shares a training must ask for it here.
    """
    method = methods.load(request.options["method"])
    if "calibration" not in request.options:
        return method
    options, thresholds = request.options, request.options.get("thresholds", False)
    if options["calibration"] == PUBLIC:
        stands_for = importlib.import_module(PUBLIC_CALIBRATION).PubliclyCalibrated
        return stands_for(method, inputs.held_out_rows, bool(thresholds))
    calibrated = importlib.import_module(CALIBRATION).Calibrated
    return calibrated(method, options["calibration"], lambda: TrainingRows(inputs), thresholds)


def own_problem(request: CellRequest, inputs: CellInputs, parameters, problem: Problem) -> tuple[Problem, Plan]:
    """The problem of a cell's method alone, with less budget where scores are calibrated, and the plan of all."""
    if request.options.get("calibration", PUBLIC) == PUBLIC:  # which releases nothing
        return problem, methods.load(request.options["method"]).plan(parameters, problem)
    method = method_of(request, inputs)
    plan = method.plan(parameters, problem)
    return method.own[0], plan


def train_cell(request: CellRequest, inputs: CellInputs, outputs: dict[str, str]) -> None:
    """Train every seed, score the test split, and write model, run, scores, ledger and (if asked for) curve.

    What the scores are worth is for `dpstudy.jobs.scoring` to say: another metric trains nothing again.

    Args:
        outputs: paths under the keys model, run, scores, ledger, curve for stepped methods, and audit for those that
            attack what they claim.

    Raises:
        StudyError: an unreachable epsilon, delta not below 1/n on own data, labels out of range, divergence; the
            library was edited since the study was laid out, so that nobody could say what made the cell; or the cell
            was trained with secure noise before.
    """
    request.check_library()
    if request.checkpoint:  # a training that takes long: a process of its own
        keep_freed_memory()
    manifests = inputs.manifests()
    problem = pose_problem(request, manifests)
    request.check_enough(problem)
    method, choice = method_of(request, inputs), None
    hyper = hyperparameters(request.options)
    paid = importlib.import_module(PAID_TUNING).load(request, inputs) if pays(request.options) else None
    if paid:  # it stands for its method, with settings of its own
        method, parameters = paid, None
    else:
        hyper, choice = settled(request, inputs)
        parameters = methods.parameters(request.options["method"], hyper)
    if "curve" in outputs and not hasattr(method, "spent"):
        raise StudyError(f"method {request.options['method']!r}: its schema has a curve, but its module no `spent`")
    plan = method.plan(parameters, problem)
    check_plan(plan, problem, request.options["method"], is_beyond_target(request.options | hyper))
    _log.info("plan: %s", plan)
    before = resumed(request, inputs) if plan.events else None
    known = _check_spending(request, problem, plan, before.training if before else None)
    data = None if paid else training_data(method, parameters, problem, inputs)
    test = inputs.held_out_rows()
    layout = {"classes": manifests[0]["classes"], "multi_label": manifests[0]["multi_label"]}
    made = made_by(request, inputs.hashes())
    if before and before.made_by["library"] != made["library"]:
        made["begun_by"] = before.made_by["library"]
    if before and before.made_by["config"] != made["config"]:
        made["begun_as"] = before.made_by["config"]
    task = CellTask(request, method, parameters, problem, plan, hyper, made_by=made, **layout)
    tuning = choice.summary if choice else {}
    ledger = ledger_of(task, tuning)
    keeper = keeper_of(request, parameters, before.made_by if before else made, ledger)
    outcome, attacks = Outcome(), None
    sources: dict[int, NoiseSource] = {}
    with failure_paid(request, ledger, sources, keeper):
        for seed in progress(request.seeds, request.cell.path):
            if outcome.repeatable:
                outcome.repeat(seed)
                continue
            sources[seed] = request.noise_source("train", 0, seed)
            _train_seed(task, inputs, data, test, seed, sources[seed], "curve" in outputs, outcome, keeper)
        if "audit" in outputs:
            source = request.noise_source("audit", 0, request.seeds[0])
            attacks = method.audit(Fit(outcome.first_model), data, parameters, problem, plan, source)
        if paid:
            tuning = paid.summary
            ledger = ledger_of(task, tuning)
        save = _files_of(task, tuning, ledger, outcome, attacks, test, outputs)
    if request.spending and plan.events:
        pay(request, ledger, outputs, save, known, keeper.training if keeper else None)
    else:
        save(outputs)
    remove_checkpoint(request)


def _check_spending(request: CellRequest, problem: Problem, plan: Plan, training: str | None) -> int:
    """Refuse what must not be spent again, or at all, before any time goes into it.

    Args:
        training: the name of what it goes on with.

    Returns:
        how often it was trained before.
    """
    book = request.spending
    if book is None:
        return 0
    cell = request.cell
    if plan.events:
        book.check(cell.path, request.seeds, training)
    if book.ceiling:  # an infinite epsilon, which stands in no book, is beyond any
        named = {"n": problem.n, "unit": request.dataset["unit"], "noise": request.noise}
        ledger = build_ledger(plan.events, problem.budget, **named, no_guarantee=why_none(request, problem))
        with unbooked_forgotten(request):
            book.afford(cell.dataset, cell.path, request.seeds, ledger, request.records, training)
    return book.ended(cell.path, request.seeds)


def keeper_of(request: CellRequest, parameters, made: dict, ledger: Mapping | None = None):
    """The keeper of checkpoints of one seed's training, if that takes long enough to need any; else None.

    Args:
        made: what the run depends on.
        ledger: of the run; None in processes that only help.
    """
    if request.checkpoint is None or parameters is None:
        return None
    from dpstudy.methods.keeper import Keeper

    book = None
    if request.spending and ledger and ledger["events"]:
        book = functools.partial(begin, request, ledger)
    every = parameters.checkpoint_minutes, parameters.checkpoint_steps
    (seed,) = request.seeds
    return Keeper(checkpoint_of(request), made | {"seed": seed}, *every, book)


def _train_seed(
    task: CellTask,
    inputs: CellInputs,
    data,
    test: FeatureTable,
    seed: int,
    source: NoiseSource,
    stepped: bool,
    outcome: Outcome,
    keeper,
) -> None:
    started = time.monotonic()
    request, problem, plan, method, parameters = task.request, task.problem, task.plan, task.method, task.parameters
    extra, curve = {}, outcome.curve
    if keeper:
        extra["keeper"] = keeper
    if stepped:
        rows = keeper.curve if keeper else curve
        extra["monitor"] = Monitor(seed, test, task.classes, rows, holds_spent(method, plan, source))
    fitted = method.fit(data, parameters, problem, plan, source, **extra)
    check_fit(fitted, request.options["method"], problem)
    check_run(plan.events, source, problem.n)
    if keeper:
        curve.extend(keeper.curve)
    seconds = keeper.seconds if keeper else getattr(method, "seconds", None) or time.monotonic() - started
    # whatever they are: no test record decides whether a model that was paid for is kept
    outcome.scores[seed] = fitted.model.scores(test.features)
    known = accuracy_on(fitted.model, inputs.training_tables()) if request.on_training else {}
    counts: dict = {"seconds": round(seconds, 3), "releases": dict(source.drawn)}
    if calibration := calibration_of(fitted.model):
        public = task.request.options["calibration"] == PUBLIC
        counts["calibration"] = calibration | ({"on": PUBLIC} if public else {})
    outcome.rows.append({"seed": seed, "split": "test", **known, **counts})
    _log.info("seed %s: trained in %.1f s", seed, seconds)
    if outcome.first_model is None:
        outcome.first_model, outcome.repeatable = fitted.model, source.untouched


def _files_of(
    task: CellTask,
    tuning: dict,
    ledger: dict,
    outcome: Outcome,
    attacks: list[dict] | None,
    test: FeatureTable,
    outputs: dict[str, str],
) -> Callable[[Mapping[str, str]], None]:
    """What writes the cell's files to paths by the keys of `outputs`, once what they say was checked."""
    request, run = task.request, run_of(task, tuning, outcome)
    check_documents(run, ledger, outputs)
    named = name_of_cell(request.cell, seeds=list(request.seeds))
    scores = score_table(test, outcome.scores, task.classes, origin_of_scores(task.made_by), named)

    def save(paths: Mapping[str, str]) -> None:
        outcome.first_model.save(paths["model"])
        write_table(paths["scores"], scores, private=True)
        if "curve" in paths:
            write_curve(paths["curve"], task, outcome.curve)
        if attacks is not None:
            write_audit(paths["audit"], attacks, request.cell.epsilon)
        write_json(paths["ledger"], ledger | {"files": hashes(paths, "model")})
        write_json(paths["run"], run | {"files": hashes(paths, "model", "scores", "ledger", "curve")})

    return save
