"""Jobs of one machine take different GPUs."""

import os
import subprocess
import sys

import pytest

from dpstudy.core import gpus
from dpstudy.core.errors import StudyError

CHILD = "import sys; from dpstudy.core import gpus; gpus._count = lambda: 4; gpus.take(1); import os; "
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


def linked(folder, tmp_path):
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    folder.symlink_to(tmp_path / "elsewhere")


def of_another(folder, _):
    folder.mkdir(mode=0o700)
    os.chown(folder, 65534, 65534)


FOLDERS = {
    "a link": linked,
    "a file": lambda folder, _: folder.touch(),
    "open to others": lambda folder, _: (folder.mkdir(), folder.chmod(0o755)),
    "writable to a group": lambda folder, _: (folder.mkdir(), folder.chmod(0o720)),
    "another user's": of_another,
}


@pytest.mark.parametrize("case", FOLDERS)
def test_a_folder_that_others_made_or_reach_is_refused(machine, monkeypatch, case):
    """In the folder for temporary files anybody may have made it; nothing is written into it or where it leads."""
    if case == "another user's" and os.geteuid():
        pytest.skip("only root gives a folder away")
    FOLDERS[case](machine / f"dpstudy-gpus-{os.getuid()}", machine)
    before = sorted(machine.rglob("*"))
    with pytest.raises(StudyError, match=f"dpstudy-gpus-{os.getuid()}: the locks .* set TMPDIR to a folder of your"):
        gpus.take(1)
    assert sorted(machine.rglob("*")) == before and "CUDA_VISIBLE_DEVICES" not in os.environ


def test_the_folder_of_the_locks_is_this_users_alone(machine, monkeypatch):
    before = os.umask(0)
    try:
        assert taken(1, monkeypatch) == "0"
    finally:
        os.umask(before)
    assert {path.name: path.stat().st_mode & 0o777 for path in machine.rglob("*")} == {
        f"dpstudy-gpus-{os.getuid()}": 0o700,
        "0": 0o600,
    }
