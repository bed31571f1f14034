"""Dry runs without the second that Python takes to import Snakemake: a process that has it forks once for each.

All that a study brings (its Snakefile, its library, its config) is read by the fork. Only dry runs are made so: results
must not look stale where the order of sets is another one, and every run in earnest has its own.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path


class DryRuns:
    """A process that plans; what looks at `environment` when Python starts has that one."""

    def __init__(self, environment: dict[str, str]):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._process = subprocess.Popen([sys.executable, __file__], env=environment, text=True, **pipes)

    def plan(self, folder: Path, arguments: Sequence[str], environment: dict[str, str]) -> tuple[int, str]:
        """Exit status and output of `snakemake ARGUMENTS --dry-run` in a folder."""
        output = folder.with_name(f"{folder.name}-planned.out")
        call = {"folder": str(folder), "arguments": [*arguments, "--dry-run"], "output": str(output)}
        call["environment"] = environment
        print(json.dumps(call), file=self._process.stdin, flush=True)
        return int(self._process.stdout.readline()), output.read_text()

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def _fork(main, call: dict) -> int:
    """What the exit status of Snakemake is, which a child of this process runs."""
    if child := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status = 1
    try:
        os.environ.clear()
        os.environ.update(call["environment"])
        os.chdir(call["folder"])
        output = os.open(call["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for number in (1, 2):
            os.dup2(output, number)
        sys.argv[1:] = call["arguments"]
        main()
        status = 0
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    sys.argv[0], sys.path[0] = (str(Path(sys.executable).with_name("snakemake")), str(Path(sys.executable).parent))
    from snakemake.cli import main

    for line in sys.stdin:
        print(_fork(main, json.loads(line)), flush=True)
