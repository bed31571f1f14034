"""What the workflow's programs are given."""

import sys

import pytest

from dpstudy.command import workflow
from dpstudy.core.errors import StudyError


@pytest.fixture
def called(monkeypatch, tmp_path):
    """A clone, and what is called from it: (arguments, folder)."""
    calls, clone = [], tmp_path / "clone"
    (clone / "workflow").mkdir(parents=True)
    (clone / "Snakefile").touch()
    monkeypatch.setattr(workflow, "WORKFLOW", clone / "workflow")
    monkeypatch.setattr(workflow.subprocess, "call", lambda program, cwd: calls.append((program, cwd)) or 0)
    monkeypatch.chdir(clone)
    return calls


def given(called):
    ((program, folder),) = called
    assert program[0] == sys.executable
    return [part.replace(str(folder.parent), "..") for part in program[1:]], folder.name


def test_in_the_clone_itself_snakemake_finds_its_files(called):
    workflow.run("run", None, None, [], [], [])
    assert given(called) == (["../clone/workflow/run.py"], "clone")


def test_elsewhere_it_is_told_where_they_are(called, tmp_path):
    (tmp_path / "clone/mine.yaml").write_text("study: mine\n")
    workflow.run("run", "mine.yaml", "../elsewhere", ["a", "b"], ["results/x"], ["--cores", "2", "-n"])
    arguments, folder = given(called)
    assert folder == "elsewhere" and (tmp_path / "elsewhere").is_dir()
    assert arguments == [
        "../clone/workflow/run.py", "results/x", "--snakefile", "../clone/Snakefile", "--configfile",
        "../clone/mine.yaml", "--config", "only=[a,b]", "--cores", "2", "-n",
    ]  # fmt: skip


@pytest.mark.parametrize(("rest", "left"), [([".snakemake/log"], False), ([".snakemake/log", "results/data"], True)])
def test_a_new_folder_of_a_study_with_a_mistake_is_gone_again(called, tmp_path, monkeypatch, rest, left):
    def refused(_program, cwd):
        for name in rest:
            (cwd / name).mkdir(parents=True)
        return 1

    monkeypatch.setattr(workflow.subprocess, "call", refused)
    (tmp_path / "clone/mine.yaml").write_text("study: mine\n")
    assert workflow.run("run", "mine.yaml", "../new/deep", [], [], []) == 1
    assert (tmp_path / "new").is_dir() is left
    (tmp_path / "old").mkdir()
    workflow.run("run", "mine.yaml", "../old", [], [], [])
    assert (tmp_path / "old").is_dir()  # it was there before


@pytest.mark.parametrize(("own", "config"), [(True, "../elsewhere/config.yaml"), (False, "../clone/config.yaml")])
def test_a_folder_s_own_study_comes_before_the_clone_s(called, tmp_path, own, config):
    if own:
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "elsewhere/config.yaml").touch()
    workflow.run("status", None, "../elsewhere", [], [], [])
    assert given(called)[0][-1] == config


def test_an_installed_library_says_that_it_has_no_workflow(monkeypatch, tmp_path):
    monkeypatch.setattr(workflow, "WORKFLOW", tmp_path / "site-packages")
    with pytest.raises(StudyError, match="clone the repository"):
        workflow.run("run", None, None, [], [], [])


def test_a_file_is_no_folder_to_run_in(called, tmp_path):
    (tmp_path / "log").write_text("")
    with pytest.raises(StudyError, match="log: is a file; name a folder, which may be a new one"):
        workflow.run("run", None, str(tmp_path / "log"), [], [], [])
