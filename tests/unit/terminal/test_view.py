"""What the view draws, and what is told in lines."""

import io
import re

import pytest
from rich.console import Console

from terminal.plain import Lines
from terminal.view import View
from tests.unit.terminal.conftest import failed, finished, started


def frame(study, columns, now, note=""):
    view = View(study)
    view._console = Console(file=io.StringIO(), width=columns, force_terminal=False)
    view._now, view._note = now, note
    view._console.print(view.frame())
    return view._console.file.getvalue().rstrip("\n").split("\n")


@pytest.mark.parametrize("columns", [200, 80, 40, 24])
def test_no_line_is_longer_than_the_terminal_and_two_say_how_far_the_study_is(planned, columns):
    planned.hear(started(1), 101.0)
    planned.hear(started(2, "2"), 101.0)
    planned.hear(failed(1), 141.0)
    lines = [line.rstrip() for line in frame(planned, columns, 175.0, "digits: 40% (2 of 5), " + "long " * 40)]
    assert max(map(len, lines)) <= min(columns - 4, 80)
    assert lines[0].startswith("study tiny, 1:15")
    assert [line.split()[0] for line in lines[1:3]] == ["cells", "jobs"]
    assert "5 of 8" in lines[1] and "0 of 4" in lines[2]
    assert ("━" in lines[1]) == (columns >= 80)
    assert lines[3].startswith("    1:14  ") and lines[3].endswith("eps=2")
    if columns >= 80:
        assert "5 of 8, 1 running, 1 failed" in lines[1] and "train_stepped digits/pixels/sgd/eps=2" in lines[3]


def test_many_running_jobs_are_counted(planned):
    for number in range(20):
        planned.hear(started(number, str(number)), 101.0)
    lines = frame(planned, 80, 102.0)
    assert len(lines) == 3 + 5 + 1 and lines[-1].strip() == "and 15 more"


def test_lines_have_a_time_and_come_seldom(planned, capsys):
    lines = Lines(planned)
    for second in range(100, 161):
        if second < 140:
            planned.hear(started(second, str(second)), second)
            planned.hear(finished(second), second)
        lines.refresh(float(second))
    with lines:
        pass
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 2  # at 130 and at 160
    time, _, line = told[1].partition("  ")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", time)
    assert line.startswith("cells 45 of 8 done, jobs 40 of 4 done, last cell digits/pixels/sgd/eps=139")


def test_lines_are_seldom_while_nothing_ends(planned, capsys):
    planned.hear(started(1), 100.0)
    lines, told = Lines(planned), []
    for second in range(100, 2300):
        lines.refresh(float(second))
        told += [second] * len(capsys.readouterr().err.splitlines())
    assert told == [160, 280, 520, 1000, 1600, 2200]


def test_the_last_line_is_left_to_what_a_complete_study_says(planned, capsys):
    for done, told in ((planned.jobs - 1, 1), (planned.jobs, 0)):
        planned.jobs_done = done
        with Lines(planned):
            pass
        assert len(capsys.readouterr().err.splitlines()) == told
