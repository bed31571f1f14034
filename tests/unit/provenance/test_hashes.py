"""One file stands for the code of many jobs: it says what `sha256sum` says, and changes when the code does."""

import errno
import os
import subprocess

import pytest

from dpstudy.core.errors import StudyError
from dpstudy.provenance import hashes as provenance


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fresh()
    for name in ("b.py", "a.py"):
        (tmp_path / name).write_text(f"# {name}\n")
    return ["b.py", "a.py"]


def fresh():
    """What another process would know."""
    provenance._listed.clear()
    provenance._file_hash.cache_clear()


def test_it_is_what_sha256sum_checks(files):
    path = provenance.list_code(files, "code/job.sha256")
    done = subprocess.run(["sha256sum", "--check", path], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.splitlines() == ["a.py: OK", "b.py: OK"]
    assert provenance.listed_code(path) == ["a.py", "b.py"]
    assert provenance.library_hash(provenance.listed_code(path)) == provenance.library_hash(files)


def test_it_is_written_anew_only_where_code_changed(files):
    path = provenance.list_code(files, "code/job.sha256")
    os.utime(path, (1, 1))
    fresh()
    provenance.list_code(files, path)
    assert os.stat(path).st_mtime == 1, "a new time would look like new code"
    before = open(path).read()
    with open("a.py", "a") as file:
        file.write("changed = True\n")
    fresh()
    provenance.list_code(files, path)
    assert os.stat(path).st_mtime > 1 and open(path).read() != before
    provenance.list_code(["a.py"], path)
    assert provenance.listed_code(path) == ["a.py"], "another method's list is not taken for this one"


def test_what_could_not_be_written_leaves_nothing(files, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        with pytest.raises(StudyError, match="the disk is full"):
            provenance.list_code(files, "code/job.sha256")
    assert os.listdir("code") == []
    provenance.list_code(files, "code/job.sha256")
    assert os.listdir("code") == ["job.sha256"]
