"""A disk that is full, read-only, or becomes so: one sentence, and once it is mended the run goes on."""

import contextlib
import errno
import os
import re
import shutil
import subprocess
import sys

import pytest

from dpstudy.core.errors import StudyError
from dpstudy.core.files import atomic, write_json
from tests.workflow.conftest import StudyFolder, make_folder
from tests.workflow.faults import DIGITS_SHARD, fails, make_study, mount, small_disk, works
from tests.workflow.kills import Run, temporary_files


@pytest.mark.parametrize("size", ["4k", "16k"])  # no room for the log, none for the shard
def test_a_full_disk(empty, size):
    results = empty.path / "results"
    with small_disk(results, size):
        fails(empty, DIGITS_SHARD, "the disk is full; free some space and run the same command again")
        assert mount("-o", "remount,size=16m", str(results))
        works(empty, DIGITS_SHARD)


@pytest.mark.parametrize("run", [StudyFolder.snakemake, lambda study, *target: make_study(study, *target)])
def test_a_read_only_results_folder(empty, run):
    results = empty.path / "results"
    with small_disk(results, "16m"):
        assert mount("-o", "remount,ro", str(results))
        for target in ([DIGITS_SHARD], []):
            result = run(empty, *target)
            assert result.returncode
            assert "results: cannot be written to; it is read-only, or another user's." in result.stderr
            assert "Traceback" not in result.stderr
        assert mount("-o", "remount,rw", str(results))
        works(empty, DIGITS_SHARD)


@pytest.mark.parametrize("place", [".", ".snakemake", "results"])
def test_a_read_only_mount_is_said_by_status_and_before_a_run(tmp_path, place):
    """The whole clone, what Snakemake keeps beside it, or the results."""
    path = tmp_path / "study"
    if place != ".":
        make_folder(path)
    with small_disk(path / place, "64m"):
        study = make_folder(path) if place == "." else StudyFolder(path)
        if place == ".":
            shutil.rmtree(path / ".snakemake")  # of a clone that nobody has used
        assert mount("-o", "remount,ro", str(path / place))
        for program in (["workflow/status.py"], ["workflow/run.py", "--cores", "1"]):
            result = subprocess.run(
                [sys.executable, *program], cwd=path, env=study.environment, capture_output=True, text=True
            )
            named = str(path) if place == "." else place
            assert f"{named}: cannot be written to; it is read-only, or another user's. Make it" in (
                result.stdout + result.stderr
            )
            lists = place == "results" and "status" in program[0]  # that only reads
            assert (result.returncode, "  missing digits/" in result.stdout) == ((0, True) if lists else (1, False))
            assert "Traceback" not in result.stderr and "runs them on this machine" not in result.stdout


def test_what_status_cannot_make_or_read_is_a_sentence(study):
    """A folder that Snakemake wants, a ledger."""

    def status():
        command = [sys.executable, "workflow/status.py"]
        return subprocess.run(command, cwd=study.path, env=study.environment, capture_output=True, text=True)

    (study.path / ".snakemake/locks").touch()
    said = status()
    assert said.returncode == 1, said.stdout
    assert re.fullmatch(r"dpstudy: .*/\.snakemake/locks: File exists; mend this and try again\n", said.stderr)
    (study.path / ".snakemake/locks").unlink()
    ledger = study.path / "results/cells/digits/pixels/ls/eps=1/ledger.json"
    ledger.write_text("{")
    said = status()
    assert said.returncode == 1 and "a run would stop at once" in said.stderr, said.stderr
    assert re.search(r"^  wrong   .*ls/eps=1/ledger\.json: not valid JSON .* delete it and run the", said.stdout, re.M)


def test_a_results_folder_that_turns_read_only_in_mid_run(empty):
    results = empty.path / "results"
    with small_disk(results, "64m"):
        run = Run(empty)
        assert run.wait_for("prepare_shard")
        while not mount("-o", "remount,ro", str(results)):  # refused while a job has its log open
            assert run.process.poll() is None, run.said()
        assert run.wait() == 1
        said = run.said()  # Snakemake's own words too, where it could not note what it had done
        assert "workflow/dpstudy" not in said, said
        told = "dpstudy: results: cannot be written to, the disk is read-only; mount it for writing and run"
        assert told in said, said
        assert mount("-o", "remount,rw", str(results))
        again = Run(empty, "results/cells/digits/pixels/ls/eps=1/metrics.json")
        assert again.wait() == 0, again.said()
        assert temporary_files(empty) == []


def test_a_disk_too_full_to_start(tmp_path):
    with small_disk(tmp_path / "disk", "16m"):  # a study takes 8
        study = make_folder(tmp_path / "disk")
        filler = tmp_path / "disk" / "filler"
        with contextlib.suppress(OSError):
            filler.write_bytes(bytes(32 << 20))
        result = make_study(study, "--dry-run")
        assert result.returncode == 1
        assert result.stderr == "dpstudy: the disk is full; free some space and run the same command again\n"
        filler.unlink()
        assert make_study(study, "--dry-run").returncode == 0


def test_an_output_that_does_not_fit_leaves_nothing(tmp_path):
    path = tmp_path / "out.json"
    with pytest.raises(StudyError, match="out.json: the disk is full"), atomic(path) as temporary:
        temporary.write_text("half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert list(tmp_path.iterdir()) == []


def test_an_old_output_outlives_a_failed_write(tmp_path):
    write_json(tmp_path / "out.json", {"old": 1})
    with pytest.raises(StudyError), atomic(tmp_path / "out.json") as temporary:
        temporary.write_text("half")
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]
    assert "old" in (tmp_path / "out.json").read_text()
