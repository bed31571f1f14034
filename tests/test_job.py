"""What a job's frame does before anything is written."""

import os

import pytest

from dpstudy.errors import StudyError
from dpstudy.job import keep_to_owner


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


def test_a_folder_of_somebody_else_is_told(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "chmod", refuse)
    with pytest.raises(
        StudyError, match="results: cannot be closed to others .Operation not permitted.*folder of your"
    ):
        keep_to_owner("results")
