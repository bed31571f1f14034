"""What a terminal, and the log of a job, are told of long loops."""

import io
import itertools
import logging
import time

import pytest

from dpstudy.core import progress as module
from dpstudy.core.progress import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def slowly(count):
    for item in range(count):
        time.sleep(0.002)
        yield item


@pytest.mark.parametrize("jobs", [True, False])
def test_a_loop_says_how_far_it_is_and_what_its_note_has(monkeypatch, jobs):
    terminal = Terminal()
    monkeypatch.setattr(module.sys, "stderr", terminal)  # here: pytest has its own between fixtures and tests
    monkeypatch.setattr(module, "_LINE_SECONDS", 0.0)
    monkeypatch.delenv(module.WORKFLOW, raising=False)
    if jobs:
        monkeypatch.setenv(module.WORKFLOW, "1 1")
    assert list(progress(slowly(4), "cell", 4, lambda done: f"note of {done}")) == [0, 1, 2, 3]
    said = terminal.getvalue()
    assert "cell" in said and "note of 2" in said
    if jobs:
        assert "  - cell: 50% (2 of 4), 0 s left, note of 2" in said.splitlines()


def test_nothing_is_said_elsewhere(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(module.sys, "stderr", stream)
    assert list(progress(slowly(3), "cell", 3, lambda done: 1 / 0)) == [0, 1, 2]
    assert not stream.getvalue()


def test_a_job_that_nobody_sees_tells_its_log(monkeypatch, caplog):
    clock = itertools.count(step=30)  # seconds: each item takes half a minute
    monkeypatch.setattr(module.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(module.sys, "stderr", io.StringIO())
    monkeypatch.setenv(module.WORKFLOW, "1 1")
    with caplog.at_level(logging.INFO, "dpstudy"):
        assert list(progress(range(6), "cell", 6, lambda done: f"note of {done}", before=2)) == list(range(6))
    # what an earlier process did, items 0 and 1, took no time here and says nothing of the rest
    assert caplog.messages == [
        "cell: 50% (3 of 6), 90 s left, note of 3",
        "cell: 83% (5 of 6), 30 s left, note of 5",
    ]
    assert not module.sys.stderr.getvalue()
