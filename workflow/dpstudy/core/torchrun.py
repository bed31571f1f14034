"""Running a job in several processes of one machine with torchrun."""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from dpstudy.core.errors import StudyError
from dpstudy.core.job import ending_with_me
from dpstudy.core.progress import LINE, SHOWN

_ENDED = re.compile(r"^ *exitcode *: *-\d+ \(pid: \d+\) +\((SIG\w+)\)$", re.MULTILINE)
_FIRST = "Root Cause (first observed failure):"
# The library of this process comes first, whatever the environment or the current folder has by its name; and a process
# ends with its job from its first moment, not only once it has loaded torch.
_START = (
    "import sys; sys.path.insert(0, sys.argv[1]); from dpstudy.core.job import end_with_workflow; end_with_workflow(); "
    "from {} import main; main(sys.argv[2])"
)
_LIBRARY = str(Path(__file__).parents[2])


def run(module: str, content: dict, processes: int, threads: int) -> None:
    """Run `main(TASK)` of a module in `processes` processes, where TASK is a JSON file of `content`.

    Args:
        threads: of the job, which the processes share.

    Raises:
        SystemExit: one failed; the sentence that says why is on standard error.
        StudyError: one was killed, by somebody or for want of memory.
    """
    with tempfile.TemporaryDirectory() as folder:
        task = Path(folder) / "task.json"
        task.write_text(json.dumps(content), encoding="utf-8")
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
        command += ["--no-python", sys.executable, "-u", "-c", _START.format(module), _LIBRARY, str(task)]
        # they have sessions of their own: where this job is killed alone, they must not train on beside the next one
        environment = os.environ | ending_with_me() | {"OMP_NUM_THREADS": str(max(1, threads // processes))}
        if sys.stderr.isatty():
            environment[SHOWN] = "yes"
        status, errors = _run(command, environment)
    if status:
        if signal := _killed("".join(errors)):
            raise StudyError(
                f"one of the {processes} processes that share this job was ended by {signal} (by somebody, or for "
                "want of memory); run the same command again: a training goes on from its last checkpoint"
            )
        sentences = [line for line in errors if line.startswith("dpstudy: ")]
        sys.stderr.write("".join(sentences[:1] or errors))
        raise SystemExit(1)


def _killed(said: str) -> str | None:
    """The signal that ended a process, if that is why all failed: the others miss it, and have errors of their own.

    torchrun ends them by SIGTERM, or, as it says, SIGKILL; it may take any of those for the first that failed.
    """
    _, _, first = said.partition(_FIRST)
    if match := _ENDED.search(first):
        return match[1]
    others = {signal for signal in _ENDED.findall(said) if signal != "SIGTERM"}
    return None if "forcefully exiting" in said else next(iter(sorted(others)), None)


def _run(command: list[str], environment: dict[str, str]) -> tuple[int, list[str]]:
    """The exit status, and what was said on standard error but progress, which is passed on at once."""
    lines = []
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr or ():
            if line.startswith(LINE):
                sys.stderr.write(line)
            else:
                lines.append(line)
    return process.returncode, lines
