"""What a job's frame does before anything is written."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dpstudy.core.errors import StudyError
from dpstudy.core.job import keep_to_owner

WORKFLOW = Path(__file__).parents[3] / "workflow"


@pytest.fixture(autouse=True)
def umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


def test_what_is_kept_to_its_owner_is_closed_to_others_before_and_after(tmp_path):
    (tmp_path / "results").mkdir(mode=0o755)
    keep_to_owner(str(tmp_path / "results"), str(tmp_path / "not yet"))
    (tmp_path / "not yet").mkdir()
    (tmp_path / "new").touch()
    assert not any(path.stat().st_mode & 0o077 for path in tmp_path.iterdir())


def test_a_log_that_was_begun_before_goes_on_where_nobody_else_has_it_open(tmp_path):
    """Snakemake begins its log before it reads the Snakefile; whoever has opened it since sees no more of it."""
    (tmp_path / "log").mkdir()
    path, beside = tmp_path / "log" / "now.log", tmp_path / "lock"
    with open(path, "w") as log, open(beside, "w") as lock:
        print("begun", file=log, flush=True)
        inode = os.fstat(lock.fileno()).st_ino
        with open(path) as reader:
            keep_to_owner(str(tmp_path))
            print("a person's name", file=log, flush=True)
            assert reader.read() == "begun\n"
        assert os.fstat(lock.fileno()).st_ino == inode, "a lock is no log: closing its file would give it back"
        assert not os.get_inheritable(log.fileno())
    assert path.read_text() == "begun\na person's name\n" and path.stat().st_mode & 0o777 == 0o600
    assert list((tmp_path / "log").iterdir()) == [path]


def test_a_folder_of_somebody_else_is_told(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "chmod", refuse)
    with pytest.raises(
        StudyError, match="results: cannot be closed to others .Operation not permitted.*folder of your"
    ):
        keep_to_owner("results")


def test_a_job_notes_the_most_memory_that_it_had(tmp_path):
    program = (
        "import sys; from dpstudy.core.job import job\n"
        "with job(sys.argv[1]):\n"
        "    held = b'x' * int(sys.argv[2]); del held\n"
    )
    peaks = []
    for held in (1_000, 200_000_000):
        log = tmp_path / f"{held}.log"
        subprocess.run([sys.executable, "-c", program, str(log), str(held)], cwd=WORKFLOW, check=True)
        peaks.append(int(re.findall(r"done in [0-9.]+ s, ([0-9]+) MB at most", log.read_text())[0]))
    assert peaks[0] < 60 and 190 < peaks[1] - peaks[0] < 215


def test_a_job_says_why_it_stops_in_one_piece(tmp_path):
    """Else two that stop together write into each other's line, and what repeats it later does not know it."""
    program = (
        "import sys; from dpstudy.core.errors import StudyError; from dpstudy.core.job import job\n"
        "class Pieces(list):\n"
        "    write, flush = list.append, lambda self: None\n"
        "pieces = sys.stderr = Pieces()\n"
        "try:\n"
        "    with job(sys.argv[1]): raise StudyError('digits are out')\n"
        "except SystemExit: print(pieces)\n"
    )
    environment = os.environ | {"PYTHONPATH": str(WORKFLOW)}
    command = [sys.executable, "-c", program, str(tmp_path / "job.log")]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "['dpstudy: digits are out\\n']"
