"""Who is named where a folder is in use: a process that can be stopped."""

import os
import socket
import subprocess
import sys

import pytest

import run


def test_the_snakemake_that_outlived_its_run_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "snakemake").write_text("import sys\nprint(flush=True)\nsys.stdin.read()\n")
    note = tmp_path / run.RUN
    note.parent.mkdir()
    command = [sys.executable, str(tmp_path / "snakemake")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as snakemake:
        snakemake.stdout.readline()
        dead = subprocess.Popen([sys.executable, "-c", ""])
        dead.wait()
        note.write_text(f"{socket.gethostname()} {dead.pid} \n")
        assert run.holder() == f"process {snakemake.pid}"
        note.write_text(f"{socket.gethostname()} {os.getpid()} \n")
        assert run.holder() == f"process {os.getpid()}"
        note.write_text("elsewhere 7 \n")
        assert run.holder() == "process 7 on the machine 'elsewhere'"
        note.write_text("")
        assert run.holder() == "another run"
        snakemake.stdin.close()


def test_what_a_dead_run_had_begun_to_write_is_removed_folders_too(tmp_path):
    for name in (
        "cells/a/.run.json.7.tmp",
        "privacy/paid/cells/a/seed=0/.7.tmp/.model.safetensors.7.tmp",
        "b/.7.tmp/x",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("half")
    (tmp_path / "cells/a/run.json").write_text("{}")
    run.remove_half_written(str(tmp_path))
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["run.json"]
    assert not list(tmp_path.rglob(".*.tmp"))


def test_jobs_are_waited_for_while_slurm_does_not_answer(monkeypatch):
    """One failed squeue among many is no sign that they have ended: what they write must not be removed."""
    answers = iter([["12"], None, None, ["12"], None, []])
    slept = []
    monkeypatch.setattr(run, "slurm_jobs", lambda: next(answers))
    monkeypatch.setattr(run.time, "sleep", slept.append)
    run.wait_for_jobs()
    assert len(slept) == 5 and next(answers, "none left") == "none left"
    monkeypatch.setattr(run, "slurm_jobs", lambda: None)
    monkeypatch.setattr(run.shutil, "which", lambda program: None)
    run.wait_for_jobs()  # no SLURM here
    answers = iter([["12"]])
    monkeypatch.setattr(run, "slurm_jobs", lambda: next(answers, None))
    monkeypatch.setattr(run.time, "monotonic", iter(range(0, 10_000, 100)).__next__)
    with pytest.raises(run.RefusedError, match="jobs of a run that died may be at work: 12; try again"):
        run.wait_for_jobs()
    monkeypatch.setattr(
        run.shutil, "which", lambda program: "/usr/bin/squeue"
    )  # there is a SLURM, silent from the first
    with pytest.raises(run.RefusedError, match="may be at work; try again once it answers, or if there are none, run"):
        run.wait_for_jobs()
