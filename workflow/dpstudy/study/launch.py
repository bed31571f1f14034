"""A training by several processes of this machine: torchrun inside a job."""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from dpstudy.progress import LINE, SHOWN
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
        task = Path(folder) / "task.json"
        content = {"request": asdict(request), "inputs": asdict(inputs), "outputs": outputs, "log": log}
        task.write_text(json.dumps(content), encoding="utf-8")
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(devices)]
        path = os.pathsep.join(filter(None, (str(_LIBRARY), os.environ.get("PYTHONPATH"))))
        environment = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": str(max(1, threads // devices))}
        if sys.stderr.isatty():
            environment[SHOWN] = "yes"
        status, said = _run([*command, "-m", "dpstudy.study.rank", str(task)], environment)
    if status:
        sentences = [line for line in said if line.startswith("dpstudy: ")]
        sys.stderr.write("".join(sentences[:1] or said))
        raise SystemExit(1)


def _run(command: list[str], environment: dict[str, str]) -> tuple[int, list[str]]:
    """The exit status, and what was said on standard error but progress, which is passed on at once."""
    said = []
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr:
            if line.startswith(LINE):
                sys.stderr.write(line)
            else:
                said.append(line)
    return process.returncode, said
