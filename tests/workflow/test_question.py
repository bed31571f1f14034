"""The question before a first run with secure noise, in a terminal that shows how far the run is."""

import os
import pty
import sys
import time

import pytest
import yaml

from tests.workflow.clinic import CONFIG, write_clinic
from tests.workflow.conftest import make_folder

pytestmark = pytest.mark.slow
ASKED = b"Go on? [y/N] "


def asked_in_terminal(study, answer):
    """(exit status, what was written up to the question, while it stood for two seconds, and after the answer)."""
    child, terminal = pty.fork()
    if not child:
        os.chdir(study.path)
        environment = study.environment | {"TERM": "xterm", "COLUMNS": "80", "LINES": "24"}
        command = [sys.executable, "workflow/run.py", "--cores", "2", "results/tables/tiny.csv"]
        os.execve(sys.executable, command, environment)
    before, after = b"", b""
    while ASKED not in before:
        before += os.read(terminal, 1 << 16)
    before, _, between = before.partition(ASKED)
    os.set_blocking(terminal, False)
    for _ in range(20):
        time.sleep(0.1)
        try:
            between += os.read(terminal, 1 << 16)
        except BlockingIOError:
            continue
    os.set_blocking(terminal, True)
    os.write(terminal, answer)
    while True:
        try:
            after += os.read(terminal, 1 << 16)
        except OSError:  # the end of a pseudo-terminal on Linux
            break
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), before.decode(), between, after.decode()


@pytest.mark.parametrize("answer", ["n", "y"])
def test_it_stands_alone_until_it_is_answered(tmp_path, answer):
    study = make_folder(tmp_path / "study")
    write_clinic(study.path / "data/clinic")
    methods = {"least-squares": {"method": "least_squares"}}
    config = CONFIG | {"methods": methods, "tables": {"tiny": {"dataset": "clinic"}}}
    del config["release"]
    (study.path / "config.yaml").write_text(yaml.safe_dump(config))
    status, before, between, after = asked_in_terminal(study, answer.encode() + b"\n")
    assert "datasets.clinic: this run spends about epsilon 2 of its records at delta 0.001, by 1 model" in before
    assert not between, "whatever is drawn now is drawn over the question"
    assert (status, (study.path / "results/privacy/spent.jsonl").exists()) == (
        (1, False) if answer == "n" else (0, True)
    )
    assert ("not confirmed, and nothing was spent" in after) == (answer == "n")
    assert "elapsed" in after, "the view is back"
