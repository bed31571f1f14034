"""A study that is run in a terminal: the view, a cell that fails, and how the terminal is left."""

import copy
import os
import pty
import subprocess
import sys

from tests.workflow.conftest import TINY

CELL = "digits/pixels/sgd/eps=1"


def run_in_terminal(study, *arguments):
    """(exit status, all that was written to a terminal of 80 columns)."""
    ours, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "workflow/run.py", "--cores", "1", *arguments],
        cwd=study.path,
        env=study.environment | {"TERM": "xterm", "COLUMNS": "80", "LINES": "24"},
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
    )
    os.close(terminal)
    written = b""
    while True:
        try:
            content = os.read(ours, 1 << 16)
        except OSError:  # how a pseudo-terminal says on Linux that nobody writes to it any more
            break
        if not content:
            break
        written += content
    os.close(ours)
    return process.wait(60), written.decode()


def test_a_cell_that_fails_is_named_below_the_view_with_its_log_and_the_remedy(study):
    config = copy.deepcopy(TINY)
    config["methods"]["sgd"]["noise_multiplier"] = 0.01
    del config["methods"]["sgd"]["steps"]
    study.write_config(config)
    status, written = run_in_terminal(study, f"results/cells/{CELL}/metrics.json")
    assert status == 1
    assert "study tiny: 0 of 1 cells done, jobs to run: 2" in written
    assert "0 of 1, 1 running" in written
    assert f"failed: train_stepped {CELL}: epsilon 1 at delta 0.0001: not even one step is within it" in written
    assert written.index("\x1b[?25l") < written.rindex("\x1b[?25h")  # the cursor is hidden, and shown again
    *_, last = written.split("\x1b")
    assert "dpstudy: epsilon 1 at delta 0.0001: not even one step is within it" in last
    assert f"  job: train_stepped {CELL}\r\n  log: results/logs/train_stepped/{CELL}.log\r\n" in last
    assert "the study stopped; what is finished is kept, the same command continues once what is named" in last
    assert "Select jobs" not in written and "CalledProcessError" not in written
