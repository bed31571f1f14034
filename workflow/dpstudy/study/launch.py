"""A training by several processes of this machine: torchrun inside a job."""

import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

from dpstudy.study.inputs import CellInputs, CellRequest

_LIBRARY = Path(__file__).parents[2]


def launch(request: CellRequest, inputs: CellInputs, outputs: dict[str, str], log: str, threads: int) -> None:
    """Train as `train_cell` does, by `devices` processes of the entry's options.

    Args:
        log: the job's log, which the first process continues.
        threads: of the job, which the processes share.

    Raises:
        SystemExit: training failed; the sentence that says why is in the log and on standard error.
    """
    devices = request.options["devices"]
    with tempfile.TemporaryDirectory() as folder:
        task = Path(folder) / "task.pickle"
        task.write_bytes(pickle.dumps((request, inputs, outputs, log)))
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(devices)]
        path = os.pathsep.join(filter(None, (str(_LIBRARY), os.environ.get("PYTHONPATH"))))
        environment = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": str(max(1, threads // devices))}
        done = subprocess.run(
            [*command, "-m", "dpstudy.study.rank", str(task)], env=environment, stderr=subprocess.PIPE, text=True
        )
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.startswith("dpstudy: ")]
        sys.stderr.write("\n".join(said[:1] or [done.stderr]) + "\n")
        raise SystemExit(1)
