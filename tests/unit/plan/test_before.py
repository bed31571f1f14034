"""What is looked at before the first job: refusals that come before anything is lost."""

import json
import shutil
from pathlib import Path

import pytest

from dpstudy.config.cells import Cell
from dpstudy.core.errors import StudyError
from dpstudy.core.files import sha256
from dpstudy.plan import before
from dpstudy.plan.first_spending import DRAWN
from dpstudy.plan.internals import Job
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.data_book import DataBook
from dpstudy.privacy.events import Event
from dpstudy.privacy.ledger import build_ledger
from dpstudy.privacy.paid_store import PaidStore, name_of
from dpstudy.privacy.spending import BOOK, Spending
from tests.unit.plan.conftest import study_with

LS = Cell("own", "pixels", "ls", "1")
NAMES = {"dataset": "own", "features": "pixels", "entry": "ls", "epsilon": "1"}
OUTPUTS = {key: f"results/cells/{LS.path}/{name}" for key, name in (("run", "run.json"), ("ledger", "ledger.json"))}
TRAIN = Job("train_closed_form", NAMES, [], OUTPUTS, list(OUTPUTS.values()), "../scripts/train_cell.py", [0, 1])
SECURE = {"noise": "secure", "datasets__own__test_split": "public"}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write(path: str, content) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(json.dumps(content))


def test_a_model_that_was_paid_for_is_not_overwritten_in_silence(study):
    write(OUTPUTS["ledger"], {"noise": "secure", "events": [{"name": "x"}]})
    write(BOOK, {})
    Path(BOOK).write_text("")
    with pytest.raises(
        StudyError, match="nothing was run: cell own/pixels/ls/eps=1: its model was trained with secure"
    ):
        before.guard_paid_models(study, [TRAIN])
    assert before.guard_paid_models(study_with(release={"spend_again": True}), [TRAIN]) is False, "where it may be"
    assert before.guard_paid_models(study, []) is False, "nothing is about to be trained"


def test_a_run_is_held_against_what_was_paid_for_and_against_the_files_of_cells(study):
    write(OUTPUTS["ledger"], {"noise": "secure", "events": [{"name": "x"}]})
    Path("results/privacy").mkdir()
    Path(BOOK).write_text("")
    with pytest.raises(StudyError, match="its model was trained with secure noise"):
        before.check(study, [TRAIN], touch=False)
    write(OUTPUTS["run"], {"dataset": "own", "features": "pixels", "entry": "sgd", "epsilon": "1", "seeds": []})
    with pytest.raises(StudyError, match="nothing was run: .*own/pixels/ls/eps=1"):
        before.check(study, [Job("build_table", {}, [OUTPUTS["run"]], {}, [], "", [])], touch=False)


@pytest.fixture
def lost(monkeypatch):
    """A folder that has lost its budget log alone: the one beside the data and the store have its only training."""
    ledger = build_ledger([Event("x", "gaussian", 7.0, 1.0)], Budget("1", 1e-5), n=100, unit="record", noise="secure")

    def book(*_study, **_more):
        return Spending(BOOK, shared=["beside.jsonl"])

    for path in OUTPUTS.values():
        write(path, ledger | {"cell": NAMES, "seeds": [{"seed": 0}]} if path.endswith("ledger.json") else {})
    files = {"ledger.json": sha256(OUTPUTS["ledger"]), "run.json": sha256(OUTPUTS["run"])}
    book().record("own", LS.path, [0, 1], ledger, "r1", files=files)
    (PaidStore(Path(BOOK).with_name("paid")).place(LS.path, [0, 1]) / name_of(files)).mkdir(parents=True)
    monkeypatch.setattr(before, "book_of", book)
    monkeypatch.setattr(before, "books_of", lambda *_: ["beside.jsonl"])
    monkeypatch.setattr(before, "_note_records", lambda *_: None)
    whole = list(book().entries())
    Path(BOOK).unlink()
    return whole


def test_a_budget_log_that_was_lost_is_restored_from_the_one_beside_the_data(lost):
    """A run said to restore it, and a release that its model was trained in another folder."""
    secure, table = study_with(**SECURE), Job("build_table", {}, list(OUTPUTS.values()), {}, [], "", [])
    assert before.refusal(secure, [table], []) == ("", False)
    assert not Path(BOOK).exists(), "of a plan nothing is written"
    before.check(secure, [table], touch=False)
    assert list(Spending(BOOK).entries()) == lost
    before.check(secure, [table], touch=False)
    assert list(Spending(BOOK).entries()) == lost, "once"


def test_of_another_folder_nothing_is_restored(lost):
    shutil.rmtree(Path(BOOK).with_name("paid"))
    before.guard_paid_models(study_with(**SECURE), [])
    assert not Path(BOOK).exists()


def test_touching_files_refuses_nothing(study, monkeypatch):
    monkeypatch.setattr(before, "guard_paid_models", lambda *_: pytest.fail("nothing is trained"))
    assert before.check(study, [TRAIN], touch=True) == (False, [])


def test_what_a_run_would_refuse_is_told_of_a_plan_and_nothing_is_written(study, monkeypatch):
    secure = study_with(**SECURE)
    write(OUTPUTS["ledger"], {"noise": "secure", "events": [{"name": "x"}]})
    Path("results/privacy").mkdir()
    Path(BOOK).write_text("")
    Path("results").chmod(0o500)
    files = {path: path.stat().st_mtime_ns for path in Path().rglob("*")}
    monkeypatch.setattr(before.os, "access", lambda *_: False)  # that a folder cannot be written to is told elsewhere
    monkeypatch.setattr(DataBook, "check", lambda _: None)
    monkeypatch.setattr(DataBook, "add", lambda *_: pytest.fail("of a plan nothing is written down"))
    monkeypatch.setattr(before, "_note_records", lambda *_: pytest.fail("of a plan nothing is noted"))
    for one in (study, secure):
        said, of_paid = before.refusal(one, [TRAIN], [])
        assert of_paid and said.startswith("cell own/pixels/ls/eps=1: its model was trained with secure noise"), said
    assert before.refusal(study, [], []) == before.refusal(secure, [], []) == ("", False)
    said, of_paid = before.refusal(study, [], ["results/x"])
    assert not of_paid and said.startswith("results: files have other times than when")
    assert {path: path.stat().st_mtime_ns for path in Path().rglob("*")} == files


def test_a_missing_latex_is_said_before_anything_runs(study, monkeypatch):
    def absent():
        raise StudyError("no pdflatex")

    monkeypatch.setattr(before, "find_latex", absent)
    with pytest.raises(StudyError, match="^nothing was run: no pdflatex$"):
        before.check(study, [Job("compile_paper", {}, [], {}, [], "", [])], touch=False)
    before.check(study, [TRAIN], touch=False)


def test_files_of_a_cell_that_do_not_belong_together_stop_a_run_that_reads_them(study):
    folder = f"results/cells/{LS.path}"
    write(f"{folder}/run.json", {"dataset": "own", "features": "pixels", "entry": "sgd", "epsilon": "1", "seeds": []})
    table = Job("build_table", {}, [f"{folder}/run.json"], {}, [], "", [])
    with pytest.raises(StudyError, match="nothing was run: .*own/pixels/ls/eps=1"):
        before.check_cells(study, [table])
    before.check_cells(study, [])  # nothing reads it
    before.check_cells(study, [table, TRAIN])  # it is made anew


def test_what_is_due_is_told_with_what_counts_as_a_cell(study):
    score = Job("score_cell", NAMES, [], {"metrics": f"results/cells/{LS.path}/metrics.json"}, ["x"], "", [])
    told = before.plan_of(study, [TRAIN, score], [TRAIN, score, Job("all", {}, [], {}, [], "", [])])
    assert told == {
        "event": "plan",
        "study": "small",
        "cells": 1,
        "due": [["train_closed_form", NAMES, False], ["score_cell", NAMES, True]],
    }


def test_what_a_study_made_is_named_at_the_end(study, monkeypatch):
    write("results/summary.csv", "")
    first, *files = before.made(study)
    assert "Study 'small' is complete: 26 cells, 2 seeds each." in first and files == ["  results/summary.csv"]
    one = study | {"seeds": [0], "epsilons": ["1"], "cells": [{"features": ["pixels"], "entries": ["ls"]}]}
    assert "is complete: 1 cell, 1 seed each." in before.made(one)[0]
    monkeypatch.setenv(DRAWN, "1")
    assert before.made(study) == [first]  # of a rehearsal, whose files are removed


def test_trainings_that_are_taken_as_they_are_can_be_asked_for():
    before.note_kept(study_with(**SECURE), "kept.json")
    assert json.loads(Path("kept.json").read_text()) == []
