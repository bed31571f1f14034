"""A job done by several processes of this machine: torchrun."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from dpstudy.progress import LINE, SHOWN

_LIBRARY = Path(__file__).parents[1]


def run(module: str, content: dict, processes: int, threads: int) -> None:
    """Run `python -m module TASK` in so many processes, where TASK is a JSON file of `content`.

    Args:
        threads: of the job, which the processes share.

    Raises:
        SystemExit: one failed; the sentence that says why is on standard error.
    """
    with tempfile.TemporaryDirectory() as folder:
        task = Path(folder) / "task.json"
        task.write_text(json.dumps(content), encoding="utf-8")
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
        path = os.pathsep.join(filter(None, (str(_LIBRARY), os.environ.get("PYTHONPATH"))))
        environment = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": str(max(1, threads // processes))}
        if sys.stderr.isatty():
            environment[SHOWN] = "yes"
        status, said = _run([*command, "-m", module, str(task)], environment)
    if status:
        sentences = [line for line in said if line.startswith("dpstudy: ")]
        sys.stderr.write("".join(sentences[:1] or said))
        raise SystemExit(1)


def _run(command: list[str], environment: dict[str, str]) -> tuple[int, list[str]]:
    """The exit status, and what was said on standard error but progress, which is passed on at once."""
    said = []
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr or ():
            if line.startswith(LINE):
                sys.stderr.write(line)
            else:
                said.append(line)
    return process.returncode, said
