"""Following a program that writes events as Snakemake's logger plugin does."""

import json
import os
import signal
import sys
import time

import pytest

from terminal.follow import follow
from tests.unit.terminal.conftest import failed, started

TELL = "import os, sys, time\ntold = open(int(os.environ['DPSTUDY_EVENTS']), 'w')\n"


@pytest.fixture(autouse=True)
def handlers():
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def run(script):
    with open(os.devnull) as lock:
        return follow([sys.executable, "-c", TELL + script], lock.fileno())


def test_what_a_job_says_on_its_way_out_is_told_once_with_its_name(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    log = tmp_path / started(1)["log"][0]
    log.parent.mkdir(parents=True)
    log.write_text("2026-01-01 00:00:00,000 ERROR no such thing\n")
    events = "".join(json.dumps(event) + "\n" for event in (started(1), failed(1)))
    status, study = run(
        f"told.write({events!r}); told.flush()\n"
        "print('dpstudy: no such thing\\ndpstudy: another\\na warning', file=sys.stderr); sys.exit(3)"
    )
    assert status == 3 and list(study.failed) == [1]
    said = capfd.readouterr().err
    assert said.count("no such thing") == 1
    assert "failed: train_stepped digits/pixels/sgd/eps=1: no such thing" in said
    assert "\ndpstudy: another\n" in said and "a warning\n" in said
    assert "\x1b" not in said


def test_an_event_that_was_cut_off_and_a_survivor_do_not_hold_up_the_end():
    began = time.monotonic()
    status, _ = run(
        "import subprocess\nsubprocess.Popen(['sleep', '5'])\n"
        'told.write(\'{"event": "sa\'); told.flush(); os.kill(os.getpid(), 9)'
    )
    assert status == 128 + signal.SIGKILL
    assert time.monotonic() - began < 4


def test_a_run_that_is_told_to_end_passes_it_on():
    status, study = run("import signal\nos.kill(os.getppid(), signal.SIGTERM); time.sleep(20)")
    assert status == 128 + signal.SIGTERM
    assert study.stopping
