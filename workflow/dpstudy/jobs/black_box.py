"""The job of the black-box audit, by the losses of models trained with and without a record: black-box.json.

Unlike audit.json it depends on the data set's records, and no guarantee covers it: it is for public research data.
"""

import logging
from dataclasses import replace
from pathlib import Path

import numpy as np

from dpstudy import methods
from dpstudy.auditing.black_box import Arena, black_box
from dpstudy.auditing.black_box_canaries import make_canary
from dpstudy.auditing.loss_journal import LossJournal
from dpstudy.cell.inputs import CellInputs, CellRequest, pose_problem
from dpstudy.config.black_box_options import check_public
from dpstudy.core.errors import StudyError
from dpstudy.core.files import write_json
from dpstudy.features import images
from dpstudy.jobs.training import own_problem
from dpstudy.privacy.audit import certified_verdict
from dpstudy.privacy.noise import NoiseSource
from dpstudy.provenance.hashes import config_hash
from dpstudy.schema.methods import hyperparameters
from dpstudy.schema.reading import check

_log = logging.getLogger("dpstudy")


def audit_black_box(request: CellRequest, inputs: CellInputs, options: dict, path: str) -> None:
    """Attack a cell's method at its settings on D, the first records of the train split.

    The cell itself need not be there. delta is 1/|D| (de2022 A.2), whatever the data set's is.

    Args:
        inputs: the image shards of the train split, and of the test split, which canaries are taken from.
        options: of the study's key `black_box`, as `options_for` gives them.

    Raises:
        StudyError: own data, or fewer records than are asked for.
    """
    check_public(request.cell.dataset, request.dataset)
    made_by = {"options": request.options, "attack": options, "noise": request.noise, "library": request.library}
    made_by |= {"dataset": request.dataset, "data": inputs.hashes(), "cell": request.cell.path}
    journal = LossJournal(Path(path).with_name("journal.jsonl"), config_hash(made_by))
    arena = replace(_arena(request, inputs, options), journal=journal)
    space = {key: values for key, values in options["space"].items() if key != "canaries"}
    content = black_box(arena, space, options["pilot"], options["models"], options["confidence"])
    content["verdict"] = certified_verdict(content["epsilon_lower"], content["epsilon_certified"])
    _log.info("%s: %s", request.cell.path, content["verdict"])
    check(content, "black_box", path)
    write_json(path, content, private=True)
    journal.remove()


def _arena(request: CellRequest, inputs: CellInputs, options: dict) -> Arena:
    posed = pose_problem(request, inputs.manifests())
    features, labels = _first_records(inputs, options.get("records"))
    problem = replace(posed, n=len(labels), budget=replace(posed.budget, delta=1 / len(labels)))
    source = NoiseSource("seeded", request.cell.dataset, "canaries")  # the same z for every epsilon
    shown, name = inputs.held_out_rows(), request.options["method"]
    canaries = {}
    for canary in options["space"]["canaries"]:
        rng = source.sampling(canary)  # numpy's, since the source is seeded, which its hint cannot tell
        canaries[canary] = make_canary(canary, shown.features, shown.labels, shown.classes, rng)  # type: ignore[arg-type]
    method, parameters = methods.load(name), methods.parameters(name, hyperparameters(request.options))
    problem, _ = own_problem(request, inputs, parameters, problem)  # attacks see uncalibrated scores
    key, beside = (request.cell.path, "black-box"), inputs.beside()
    return Arena(method, parameters, problem, features, labels, canaries, mode=request.noise, key=key, beside=beside)


def _first_records(inputs: CellInputs, records: int | None) -> tuple[np.ndarray, np.ndarray]:
    """(|D|, d) pixels and (|D|,) labels of the first records; None: all."""
    tables = []
    for table in images.iterate(inputs.train[0]):
        tables.append(table)
        if records is not None and sum(map(len, tables)) >= records:
            break
    features, labels = (np.concatenate([getattr(table, key) for table in tables]) for key in ("features", "labels"))
    if records is not None and len(labels) < records:
        raise StudyError(f"black_box.records: {records}, but the train split has {len(labels)} records")
    return features[:records], labels[:records]
