"""A report names the commit that made it, and whether files differed from it."""

import subprocess

import pytest

from dpstudy.provenance import commit as module
from dpstudy.provenance.commit import commit


@pytest.fixture
def repository(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "WORKFLOW", tmp_path)

    def git(*arguments):
        who = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
        return subprocess.run(
            ["git", "-C", tmp_path, *who, *arguments], check=True, capture_output=True, text=True
        ).stdout

    return tmp_path, git


def test_the_commit_and_changes_beside_it(repository):
    folder, git = repository
    assert commit() == ""
    git("init", "-q")
    assert commit() == ""
    (folder / "a").write_text("a")
    git("add", "a")
    git("commit", "-q", "-m", "a")
    head = git("rev-parse", "HEAD").strip()
    assert commit() == head[:12]
    (folder / "a").write_text("b")
    assert commit() == f"{head[:12]} with changes"


def test_without_git_there_is_none(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert commit() == ""
