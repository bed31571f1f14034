"""The job that audits a cell's method with canaries and writes results/audit/.../audit.json."""

import logging

from dpstudy import methods
from dpstudy.auditing.canaries import Game, game_of
from dpstudy.auditing.many_runs import attack
from dpstudy.auditing.one_run import one_run
from dpstudy.cell.inputs import CellInputs, CellRequest, pose_problem
from dpstudy.config.public_points import reads_public
from dpstudy.config.tuned import pays
from dpstudy.core.errors import StudyError
from dpstudy.core.files import write_json
from dpstudy.jobs.training import own_problem
from dpstudy.privacy.accounting import certify
from dpstudy.privacy.audit import CALIBRATED, REFUTED, certified_verdict, highest
from dpstudy.schema.methods import hyperparameters
from dpstudy.schema.reading import check
from dpstudy.tuning.trials import best_trial

_log = logging.getLogger("dpstudy")


def audit_cell(request: CellRequest, inputs: CellInputs, options: dict, path: str) -> None:
    """Attack a cell's method at its settings, and write audit.json.

    No record is read: canaries play, at the cell's n, classes and noise. So the cell itself need not be there.

    Args:
        options: of the study's key `audit`: runs, canaries, confidence, sees.

    Raises:
        StudyError: nothing is noised, so that there is nothing to bound; hyper-parameters are chosen in training; or
            the attack refutes what is certified. No table is built then: a wrong privacy claim is worse than none.
    """
    if pays(request.options):
        raise StudyError(
            f"cell {request.cell.path}: chooses hyper-parameters in each training, and no attack plays that"
        )
    problem = pose_problem(request, inputs.manifests())
    if not problem.noised:
        raise StudyError(f"cell {request.cell.path}: no noise is added, so every record can be told; audit a finite ε")
    hyper = hyperparameters(request.options)
    if inputs.trials:
        hyper |= best_trial(inputs.trials, request.options["tuning"]["space"]).hyperparameters
    parameters = methods.parameters(request.options["method"], hyper)
    poorer, plan = own_problem(request, inputs, parameters, problem)
    facts = request.options["method"], parameters, poorer, reads_public(request.options)
    game = game_of(*facts, sees_model=options.get("sees") == "model", start=inputs.start)
    shared = bool(request.options.get("shared_noise"))
    key = (request.cell.path,)
    if deep(game) and not shared:
        audits = one_run(game, options["canaries"], options["confidence"], request.noise, key)
    else:
        audits = attack(game, options["runs"], options["confidence"], request.noise, shared, key)
    if poorer is not problem:
        audits = [bound | {"statistic": f"{bound['statistic']}; {CALIBRATED}"} for bound in audits]
    certified = None if shared else certify(plan.events, problem.budget.delta).epsilon
    sentence = certified_verdict(highest(audits), certified)
    _log.info("%s: %s", request.cell.path, sentence)
    if sentence.startswith(REFUTED):
        raise StudyError(
            f"cell {request.cell.path}: an attack refutes its guarantee, so that nothing is tabled: {sentence} At a "
            f"confidence of {options['confidence']:g}, what method {request.options['method']!r} releases is not what "
            "its ledger says; publish none of its cells"
        )
    content = {"audits": audits, "epsilon_certified": certified, "verdict": sentence}
    check(content, "audit", path)
    write_json(path, content)


def deep(game: Game) -> bool:
    """Whether a method mixes features at the cell's own shape, as networks do, so that a single training is audited."""
    return getattr(game.module, "AUDITED_DIM", 0) is None
