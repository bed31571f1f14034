"""Training a cell with several processes of one machine."""

from dataclasses import asdict

from dpstudy.cell.inputs import CellInputs, CellRequest
from dpstudy.core import torchrun


def launch(request: CellRequest, inputs: CellInputs, outputs: dict[str, str], log: str, threads: int) -> None:
    """Train as `train_cell` does, with as many processes as the entry's `devices`.

    Args:
        log: the job's log, which the first process continues.
        threads: of the job, which the processes share.

    Raises:
        SystemExit: training failed; the sentence that says why is in the log and on standard error.
    """
    content = {"request": asdict(request), "inputs": asdict(inputs), "outputs": outputs, "log": log}
    torchrun.run("dpstudy.jobs.rank", content, request.options["devices"], threads)
