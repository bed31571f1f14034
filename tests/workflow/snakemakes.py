"""Snakemake without the second that Python takes to import it: a process that has it forks once for each run.

All that a study brings (its Snakefile, its library, its config) is read by the fork, and each job is a process of its
own, forked as well (jobs.py). Tests of what is killed start Snakemake and its jobs as people do. Dry runs have another
such process than runs in earnest: results must not look stale where sets have another order.
"""

import contextlib
import importlib
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from subprocess import CompletedProcess, TimeoutExpired

# What Snakemake and a study's plan import later, and is not tested here.
IMPORTED = (
    *("numpy", "numpy.f2py", "scipy.linalg", "scipy.special", "pyarrow.parquet", "pyarrow.fs", "PIL.Image"),
    *(
        "jsonschema",
        "docutils.core",
        "jinja2",
        "pygments",
        "requests",
        "smart_open",
        "yte",
        "dpath",
        "snakemake.report",
    ),
)


JOBS = "DPSTUDY_FORKED_JOBS"  # in the environment of a process that runs jobs


class Snakemakes:
    """A process that forks runs; what looks at `environment` when Python starts has that one."""

    def __init__(self, environment: dict[str, str], jobs: bool = False):
        environment = environment | ({JOBS: "1"} if jobs else {})
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._process = subprocess.Popen([sys.executable, __file__], env=environment, text=True, **pipes)

    def run(
        self, folder: Path, arguments: Sequence[str], environment: dict[str, str], timeout: float | None = None
    ) -> CompletedProcess:
        """`snakemake ARGUMENTS` in a folder.

        Raises:
            TimeoutExpired: it took longer, in seconds, and was killed.
        """
        said = [folder.with_name(f"{folder.name}-{stream}.txt") for stream in ("output", "errors")]
        call = {"folder": str(folder), "arguments": [*arguments], "said": [*map(str, said)], "timeout": timeout}
        print(json.dumps(call | {"environment": environment}), file=self._process.stdin, flush=True)
        status = json.loads(self._process.stdout.readline())
        if status is None:
            raise TimeoutExpired([*arguments], timeout, *(path.read_text() for path in said))
        return CompletedProcess([*arguments], status, *(path.read_text() for path in said))

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def _fork(main, call: dict) -> int | None:
    """What the exit status of Snakemake is, which a child of this process runs; None where it took too long."""
    if child := os.fork():
        return _waited(child, call["timeout"])
    status = 1
    try:
        os.environ.clear()
        os.environ.update(call["environment"])
        os.chdir(call["folder"])
        for number, path in enumerate(call["said"], 1):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        sys.argv[1:] = call["arguments"]
        main()
        status = 0
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _waited(child: int, timeout: float | None) -> int | None:
    """The exit status of a child; None where it was killed."""
    end = time.monotonic() + (timeout or math.inf)
    while time.monotonic() < end:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def _forked(jobs: str) -> None:
    """Let Snakemake have its scripts run by the process that listens at `jobs`."""
    from snakemake.script import PythonScript

    client = f"{sys.executable} -S -E {Path(__file__).with_name('jobs.py')} {jobs}"

    def execute_script(self: PythonScript, fname: str, edit: bool = False) -> None:
        self._execute_cmd("{client} {fname:q}", client=client, fname=fname, is_python_script=True)

    PythonScript.execute_script = execute_script


def main() -> None:
    """Fork a run for each line of standard input."""
    sys.argv[0], sys.path[0] = (str(Path(sys.executable).with_name("snakemake")), str(Path(sys.executable).parent))
    with contextlib.ExitStack() as left:
        jobs = None
        if os.environ.pop(JOBS, None):
            path = f"{left.enter_context(tempfile.TemporaryDirectory())}/jobs"
            command = [sys.executable, str(Path(__file__).with_name("jobs.py")), path]
            jobs = left.enter_context(
                subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
        for name in IMPORTED:
            importlib.import_module(name)
        if jobs:
            assert jobs.stdout.readline() == "ready\n"
            _forked(path)
        for line in sys.stdin:
            print(json.dumps(_fork(importlib.import_module("snakemake.cli").main, json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
