"""A job done by several processes of this machine: torchrun."""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from dpstudy.errors import StudyError
from dpstudy.job import ending_with_me
from dpstudy.progress import LINE, SHOWN

# of the process that failed first; torchrun ends the others by SIGTERM
_KILLED = re.compile(r"^Root Cause.*?^ *exitcode *: *-\d+ .*?\((SIG\w+)\)$", re.MULTILINE | re.DOTALL)
_LIBRARY = Path(__file__).parents[1]


def run(module: str, content: dict, processes: int, threads: int) -> None:
    """Run `python -m module TASK` in so many processes, where TASK is a JSON file of `content`.

    Args:
        threads: of the job, which the processes share.

    Raises:
        SystemExit: one failed; the sentence that says why is on standard error.
        StudyError: one was killed, and could not say anything.
    """
    with tempfile.TemporaryDirectory() as folder:
        task = Path(folder) / "task.json"
        task.write_text(json.dumps(content), encoding="utf-8")
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
        path = os.pathsep.join(filter(None, (str(_LIBRARY), os.environ.get("PYTHONPATH"))))
        # they have sessions of their own: where this job is killed alone, they must not train on beside the next one
        environment = os.environ | ending_with_me()
        environment |= {"PYTHONPATH": path, "OMP_NUM_THREADS": str(max(1, threads // processes))}
        if sys.stderr.isatty():
            environment[SHOWN] = "yes"
        status, said = _run([*command, "-m", module, str(task)], environment)
    if status:
        sentences = [line for line in said if line.startswith("dpstudy: ")]
        if not sentences and (signal := _KILLED.search("".join(said))):
            raise StudyError(
                f"one of the {processes} processes that share this job was ended by {signal[1]} (by somebody, or for "
                "want of memory); run the same command again: a training goes on from its last checkpoint"
            )
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
