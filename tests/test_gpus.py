"""Jobs of one machine take different GPUs."""

import os
import subprocess
import sys

import pytest

from dpstudy import gpus

CHILD = "import sys; from dpstudy import gpus; gpus._count = lambda: 4; gpus.take(1); import os; "
CHILD += "print(os.environ['CUDA_VISIBLE_DEVICES'], flush=True); sys.stdin.read()"


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """Four GPUs, none of them taken."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(gpus, "_count", lambda: 4)
    monkeypatch.setattr(gpus, "_held", [])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # so that what was there comes back
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    yield tmp_path
    for file in gpus._held:
        os.close(file)


def taken(count, monkeypatch):
    gpus.take(count)
    found = os.environ["CUDA_VISIBLE_DEVICES"]
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    return found


def test_jobs_take_what_others_left_and_share_only_when_none_is_free(machine, monkeypatch, caplog):
    assert [taken(count, monkeypatch) for count in (1, 2)] == ["0", "1,2"]
    assert not caplog.records
    assert taken(2, monkeypatch) == "3,0"
    assert "since none is free: 0" in caplog.text


def test_another_process_keeps_its_own_until_it_ends(machine, monkeypatch):
    environment = os.environ | {"TMPDIR": str(machine)}
    with subprocess.Popen(
        [sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as child:
        assert child.stdout.readline() == "0\n"
        assert taken(1, monkeypatch) == "1"
        child.kill()
    assert taken(1, monkeypatch) == "0"


def test_a_choice_made_before_is_kept_to(machine, monkeypatch, caplog):
    for count, chosen in ((1, "2"), (2, "3,GPU-5f/1")):  # MIG's names have slashes
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2, 3,GPU-5f/1")
        assert taken(count, monkeypatch) == chosen
    for only, count in (("3", 1), ("", 1), ("2,3", 2)):  # "": hidden
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", only)
        assert taken(count, monkeypatch) == only
    assert not caplog.records


def test_without_a_choice_nothing_changes(machine, monkeypatch):
    gpus.take(0)
    monkeypatch.setattr(gpus, "_count", lambda: 1)
    gpus.take(1)
    assert "CUDA_VISIBLE_DEVICES" not in os.environ


def test_a_job_may_take_them_all(machine, monkeypatch):
    assert taken(8, monkeypatch) == "0,1,2,3"
