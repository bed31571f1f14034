"""One of the processes that `launch` starts with torchrun: the first trains and writes a cell, the others help."""

import json
import os
import time
from pathlib import Path

from dpstudy import methods
from dpstudy.cell.inputs import CellInputs, CellRequest, pose_problem, training_data
from dpstudy.cell.paid_training import resumed
from dpstudy.config.cells import Cell
from dpstudy.core.allocator import keep_freed_memory
from dpstudy.core.errors import StudyError
from dpstudy.core.job import job
from dpstudy.core.progress import SHOWN
from dpstudy.jobs.training import keeper_of, made_by, method_of, settled, train_cell

_SECONDS_TO_WRITE = 10.0


def help_to_train(request: CellRequest, inputs: CellInputs) -> None:
    """Take part in the training of every seed, and write nothing."""
    keep_freed_memory()
    problem = pose_problem(request, inputs.manifests())
    method = method_of(request, inputs)
    method = getattr(method, "uncalibrated", method)  # the first process alone knows the model
    parameters = methods.parameters(request.options["method"], settled(request, inputs)[0])
    plan, data = method.plan(parameters, problem), training_data(method, parameters, problem, inputs)
    before = resumed(request, inputs) if plan.events else None
    keeper = keeper_of(request, parameters, before.made_by if before else made_by(request, inputs.hashes()))
    for seed in request.seeds:
        source = request.noise_source("train", 0, seed)
        if hasattr(method, "train"):  # a method wrapped in a calibration, which only the first process computes
            method.train(data, parameters, source, keeper=keeper)
        else:
            method.fit(data, parameters, problem, plan, source, keeper=keeper)


def main(task: str) -> None:
    """Run the task that `launch` wrote to the file `task`."""
    from dpstudy.methods.ranks import joined

    content = json.loads(Path(task).read_text(encoding="utf-8"))
    cell = Cell(**content["request"].pop("cell"))
    request, inputs = CellRequest(cell=cell, **content["request"]), CellInputs(**content["inputs"])
    with joined() as ranks, job(content["log"] if ranks.first else f"{task}.{ranks.rank}.log", append=True):
        if ranks.first:
            train_cell(request, inputs, content["outputs"])
        else:
            os.environ.pop(SHOWN, None)  # only the first process reports progress
            try:
                help_to_train(request, inputs)
            except StudyError:  # torchrun ends all when one ends, and the first has to write down what was spent
                time.sleep(_SECONDS_TO_WRITE)
                raise
