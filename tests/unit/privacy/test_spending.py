"""The book of what secure noise has spent: every training stands in it, and none is repeated in silence."""

import contextlib
import errno
import hashlib
import json
import math
import multiprocessing
import os
import re
import shutil

import pytest

from dpstudy.cell.paid_models import Due, guard
from dpstudy.config.locations import records_of
from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json
from dpstudy.jobs.totals import write_totals
from dpstudy.privacy import gaussian
from dpstudy.privacy.accounting import certify
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.events import Event
from dpstudy.privacy.ledger import build_ledger
from dpstudy.privacy.ledger_sums import total
from dpstudy.privacy.spending import OvertakenError, Spending
from dpstudy.privacy.spent_lines import about
from dpstudy.privacy.spent_sums import Protected
from dpstudy.tables.words import spent_in_words, total_in_words, uncounted_in_words
from tests.unit.tuning.conftest import FIRST_ORDER, request_of

LEDGER = build_ledger([Event("gram", "gaussian", 7.0, 1.0)], Budget("1", 1e-5), n=1000, unit="record", noise="secure")
PERSONS = LEDGER | {"unit": "subject", "bounds": {"records": 2}}
EACH, PERSON = Protected("record"), Protected("subject")


def test_a_disk_without_locks_is_a_sentence(tmp_path, monkeypatch):
    book = Spending(tmp_path / "privacy" / "spent.jsonl")

    def unlockable(*_):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr("fcntl.flock", unlockable)
    with pytest.raises(
        StudyError, match=r"spent.jsonl: cannot be locked \(Function not implemented\).*a disk with locks"
    ):
        book.record("a", "a/b/c/eps=1", 0, LEDGER)
    assert not (tmp_path / "privacy" / "spent.jsonl").exists()


def test_a_second_training_is_refused_until_somebody_says_so(tmp_path):
    book = Spending(tmp_path / "privacy" / "spent.jsonl")
    assert list(book.entries()) == []
    book.check("a/b/c/eps=1", [0, 1])
    book.record("a", "a/b/c/eps=1", 0, LEDGER)
    with pytest.raises(StudyError, match="cell a/b/c/eps=1: it was trained with secure noise on 20.*spend_again: true"):
        book.check("a/b/c/eps=1", [0, 1])
    with pytest.raises(StudyError, match="What was made is there no more"):
        book.check("a/b/c/eps=1", [0])
    for place in ("privacy/paid/cells", "cells"):
        (tmp_path / place / "a/b/c/eps=1").mkdir(parents=True)
        with pytest.raises(StudyError, match="`make status` says what was changed: undo that"):
            book.check("a/b/c/eps=1", [0])
        shutil.rmtree(tmp_path / place)
    book.check("a/b/c/eps=1", [1])  # a new seed
    book.check("a/b/c/eps=2", [0])
    Spending(tmp_path / "privacy" / "spent.jsonl", again=True).check("a/b/c/eps=1", [0])
    (entry,) = book.entries()
    assert (entry["dataset"], entry["seed"], entry["ledger"]) == ("a", 0, LEDGER)


def test_where_nobody_has_seen_a_model_all_that_is_to_be_removed_is_named(tmp_path):
    """A network's seed is trained in results/runs: its ledger there would have been taken for a model to be lost."""
    book = Spending(tmp_path / "results/privacy/spent.jsonl")
    book.record("a", "a/b/c/eps=1", 0, LEDGER)
    with pytest.raises(StudyError, match=r"remove its lines from .*spent\.jsonl and its folders in ") as refused:
        book.check("a/b/c/eps=1", [0])
    named = set(re.findall(r"results/[a-z/]+[a-z]", str(refused.value).partition("its folders in")[2]))
    assert named == {"results/cells", "results/runs", "results/privacy/paid/cells"}


LINE = {"when": "2026-01-01T00:00:00+00:00", "dataset": "a", "cell": "x", "seed": 0, "ledger": LEDGER}


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"cell"', "it is not JSON"),
        ("", "it is not JSON"),
        ("[" * 100_000, "it is not JSON"),
        ('{"seed": ' + "9" * 5000 + "}", "it is not JSON"),
        (b"\xff", "it is not JSON"),
        ("5", "the line is no entry"),
        ("[]", "the line is no entry"),
        (json.dumps(LINE | {"ledger": None}), "'ledger' of the line is not of the type 'dict'"),
        (json.dumps(LINE | {"seed": True}), "'seed' of the line is not of the type 'int'"),
        (json.dumps(LINE | {"files": 3}), "'files' of the line is not of the type 'dict'"),
        (json.dumps(LINE | {"ledger": LEDGER | {"delta": "1"}}), "'delta' of its ledger is not of the type 'float'"),
        *((json.dumps({name: LINE[name] for name in LINE if name != key}), f"the line lacks '{key}'") for key in LINE),
    ],
    ids=str,
)
@pytest.mark.parametrize("ending", [b"", b"\n"])
def test_a_damaged_book_is_not_taken_for_an_empty_one(tmp_path, line, why, ending):
    book = Spending(tmp_path / "spent.jsonl", ceiling="3")
    line = line if isinstance(line, bytes) else line.encode()
    content = json.dumps(LINE).encode() + b"\n" + line + (ending or b"\n" * (not line))
    book.path.write_bytes(content)
    for asked in (lambda: book.check("y", [0]), lambda: book.record("a", "y", 1, LEDGER), book.trainings):
        with pytest.raises(StudyError) as refused:
            asked()
        assert f"spent.jsonl: line 2 is damaged ({why}); nobody can tell what was spent" in str(refused.value)
    assert book.path.read_bytes() == content


def test_a_line_without_an_end_does_not_swallow_the_next(tmp_path):
    book = Spending(tmp_path / "spent.jsonl")
    book.path.write_text(json.dumps(LINE))  # as an editor leaves it
    book.record("a", "y", 1, LEDGER)
    assert [(entry["cell"], entry["seed"]) for entry in book.entries()] == [("x", 0), ("y", 1)]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS])
@pytest.mark.parametrize("call", ["os.fsync", "os.replace", "pathlib.Path.write_bytes", "os.open"])
def test_of_a_write_that_fails_nothing_stays(tmp_path, monkeypatch, call, number):
    book = Spending(tmp_path / "spent.jsonl")
    book.record("a", "x", [0, 1], LEDGER)
    before = book.path.read_bytes()

    def fail(*_, **__):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patched, pytest.raises(StudyError, match="the disk is (full|read-only)"):
        patched.setattr(call, fail)
        book.record("a", "y", [0, 1], LEDGER)
    assert book.path.read_bytes() == before and not list(tmp_path.glob("*.tmp"))
    book.record("a", "y", [0, 1], LEDGER)
    assert book.path.read_bytes().startswith(before) and len(list(book.entries())) == 4
    assert book.path.stat().st_mode & 0o777 == 0o600


def test_a_book_lies_on_the_disk_before_anybody_goes_on(tmp_path, monkeypatch):
    """The new file before it has the name, the name before `record` returns."""
    done, fsync, replace = [], os.fsync, os.replace

    def noted_fsync(descriptor):
        done.append(os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")))
        fsync(descriptor)

    def noted_replace(source, target):
        done.append("renamed")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(os, "replace", noted_replace)
    Spending(tmp_path / "spent.jsonl").record("a", "x", 0, LEDGER)
    assert done[0].startswith(".spent.jsonl.") and done[0].endswith(f".{os.getpid()}.tmp")
    assert done[1:] == ["renamed", tmp_path.name]


def test_what_was_begun_counts_until_it_has_ended(tmp_path):
    """Once, with all that it will spend; what was begun and lost has been spent too."""
    ceiling = str(gaussian.epsilon_of(math.sqrt(2.5) / 7, 1e-5))  # two fit, three do not
    book = Spending(tmp_path / "spent.jsonl", ceiling=ceiling)
    book.record("a", "x", 0, LEDGER, training="t1", config="c")
    with pytest.raises(StudyError, match="cell x: its training of seed 0 was begun with secure noise on 20"):
        book.check("x", [0])
    book.check("x", [0], "t1")
    book.afford("a", "x", [0], LEDGER)
    with pytest.raises(StudyError, match="beyond release"):
        book.afford("a", "x", [0, 1], LEDGER)
    book.afford("a", "x", [0, 1], LEDGER, training="t1")
    book.record("a", "x", 0, LEDGER, files={"f": "h"}, training="t1", config="c", known=0)
    assert len(book.trainings()) == 1 and len(list(book.entries())) == 2 and book.ended("x", [0]) == 1
    with pytest.raises(StudyError, match="cell x: it was trained with secure noise on 20"):
        book.check("x", [0], "t1")
    with pytest.raises(StudyError, match="beyond release"):
        book.afford("a", "x", [0, 1], LEDGER, training="t1")  # a copy of the checkpoint, which goes on by itself
    book.record("a", "x", 0, LEDGER, training="t2")  # begun again, and lost
    assert [entry["training"] for entry in book.trainings()] == ["t1", "t2"]
    with pytest.raises(StudyError, match="beyond release"):
        book.record("a", "y", 0, LEDGER)


def test_what_failed_counts_for_ever_and_is_not_begun_again(tmp_path):
    ceiling = str(gaussian.epsilon_of(math.sqrt(2.5) / 7, 1e-5))  # two fit, three do not
    book = Spending(tmp_path / "spent.jsonl", ceiling=ceiling)
    book.record("a", "x", 0, LEDGER, training="t1")
    book.record("a", "x", 0, LEDGER, training="t1", failed="diverged")
    book.afford("a", "y", [0], LEDGER)  # the two lines are of one training
    for training in (None, "t1"):  # its checkpoint, if there is one, is of no use
        with pytest.raises(StudyError, match="cell x: its training of seed 0 with secure noise failed on 20"):
            book.check("x", [0], training)
    Spending(book.path, again=True).check("x", [0])
    assert book.ended("x", [0]) == 0 and book.before("a", 1e-5, "", EACH, ["x"]) > 0
    book.record("a", "y", [0, 1], LEDGER, training="t2", failed="diverged")  # noise was drawn, whatever the budget
    with pytest.raises(StudyError, match="beyond release"):
        book.afford("a", "z", [0], LEDGER)


def test_of_two_that_overlap_the_second_learns_of_the_first(tmp_path):
    book = Spending(tmp_path / "spent.jsonl")
    book.record("a", "x", [0, 1], LEDGER, files={"f": "1"}, known=0)
    for seeds in ([0], [1], [1, 2]):
        with pytest.raises(OvertakenError):
            book.record("a", "x", seeds, LEDGER, files={"f": "2"}, known=0)
    book.record("a", "x", [2], LEDGER, files={"f": "2"}, known=0)
    book.record("a", "y", [0], LEDGER, files={"f": "2"}, known=0)
    assert len(list(book.entries())) == 4


def _old(path, *names):
    """A book whose lines are those of earlier versions."""
    lines = [LINE | {"dataset": dataset, "records": records} for dataset, records in names]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return Spending(path)


def test_rows_keep_the_numbers_by_which_a_book_knows_them(tmp_path):
    """And only those: of the same reader and folder, whatever enlarges it, or of an old line's name."""
    mine = {"datasets": {"own": {"reader": "idx", "location": "mine"}}, "data_root": str(tmp_path)}
    others = [
        {"reader": "cifar", "location": "mine"},
        {"reader": "idx", "location": "mine/below"},
        {"reader": "idx", "location": "other"},
    ]
    records = records_of(mine, "own")
    book = _old(tmp_path / "old.jsonl", ("another name", records))
    assert book.numbered("own", records)
    for entry in others:
        assert not book.numbered("another name", records_of(mine | {"datasets": {"d": entry}}, "d"))
    enlarged = mine["datasets"]["own"] | {"extra": {"reader": "arrays", "location": "more"}}
    assert book.numbered("d", records_of(mine | {"datasets": {"d": enlarged}}, "d"))
    assert _old(tmp_path / "older.jsonl", ("own", "")).numbered("own", records)
    assert not _old(tmp_path / "older.jsonl", ("own", "")).numbered("x", records)


def test_what_is_trained_now_changes_no_names(tmp_path):
    """A data set that is new keeps the names it has; one that an old book knows keeps its numbers for good."""
    book = Spending(tmp_path / "new.jsonl")
    for seed in (0, 1):
        assert not book.numbered("own", "r1")
        book.record("own", "own/b/c/eps=1", seed, LEDGER, "r1")
    assert [entry["ids"] for entry in book.entries()] == ["content"] * 2
    book = _old(tmp_path / "old.jsonl", ("own", "r1"))
    for seed in (0, 1):
        book.record("own", "own/b/c/eps=1", seed, LEDGER, "r1")
        book.record("other", "other/b/c/eps=1", seed, LEDGER, "r2")
        assert book.numbered("own", "r1") and not book.numbered("other", "r2")
    assert all(("ids" in entry) == (entry["dataset"] == "other") for entry in book.entries()), "whoever mends the book"


def _write(path, job):
    for seed in range(40):
        Spending(path).record("a", f"cell {job}", seed, LEDGER)


def test_jobs_that_write_at_once_lose_no_line(tmp_path):
    jobs = [multiprocessing.get_context("fork").Process(target=_write, args=(tmp_path / "s", job)) for job in range(4)]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()
    assert len({(entry["cell"], entry["seed"]) for entry in Spending(tmp_path / "s").entries()}) == 160


def test_trainings_together_stay_below_the_ceiling(tmp_path):
    """Each release of LEDGER is 1/7-Gaussian DP, so that k of them on the same records are sqrt(k)/7-Gaussian DP."""
    ceiling = gaussian.epsilon_of(math.sqrt(5.5) / 7, 1e-5)  # five fit, six do not
    book = Spending(tmp_path / "spent.jsonl", ceiling=str(ceiling))
    book.record("a", "a/b/c/eps=1", [0, 1, 2], LEDGER, "r1")
    with pytest.raises(StudyError, match=r"ε = 1\.342 on these records \(before it 0\.916\), beyond release"):
        book.record("a", "a/b/c/eps=1", [3, 4, 5], LEDGER, "r1")
    assert len(list(book.entries())) == 3, "of what is refused nothing is written down"
    with pytest.raises(StudyError, match=r"; leave the cell out, or take a smaller ε \((\S+) fits\)$") as told:
        book.afford("a", "a/b/c/eps=1", [3, 4, 5], LEDGER, "r1")
    largest = float(re.search(r"ε \((\S+) fits", str(told.value))[1])
    exact = gaussian.epsilon_of(math.sqrt(2.5 / 3) / 7, 1e-5)
    assert 0.85 * exact < largest < exact
    (event,) = LEDGER["events"]
    fitting = LEDGER | {"events": [event | {"noise_multiplier": 1 / gaussian.mu_of(largest, 1e-5), "count": 1}]}
    book.afford("a", "a/b/c/eps=1", [3, 4, 5], fitting, "r1")
    less = Spending(tmp_path / "spent.jsonl", ceiling="0.9")
    with pytest.raises(
        StudyError, match=r"\(before it 0\.916\), beyond .*0\.9}, of which nothing is left; leave the cell out$"
    ):
        less.record("a", "a/b/c/eps=1", [3], LEDGER, "r1")
    book.record("another name", "d/b/c/eps=1", [3, 4], LEDGER, "r1")
    book.record("a", "a/b/c/eps=1", [3, 4, 5], LEDGER, "r2")
    for ledger, why in (
        (LEDGER, "with it trainings"),
        (LEDGER | {"guarantee": "claimed"}, "its guarantee is 'claimed', without a bound"),
        (LEDGER | {"unit": "subject"}, "protect single records and bound nothing for persons"),
    ):
        with pytest.raises(StudyError, match=why):
            book.afford("a", "a/b/c/eps=1", [6], ledger, "r1")
    Spending(tmp_path / "spent.jsonl").afford("a", "a/b/c/eps=1", [6], LEDGER, "r1")


def _write_below(path, job):
    for seed in range(4):
        with contextlib.suppress(StudyError):
            Spending(path, ceiling=str(gaussian.epsilon_of(math.sqrt(5.5) / 7, 1e-5))).record(
                "a", str(job), seed, LEDGER
            )


def test_a_budget_is_added_up_at_the_smallest_delta_of_all(tmp_path):
    """A model of a larger one would else make room for itself: of a budget of 2.5, 2 was spent at 1e-5."""

    def ledger(epsilon, delta):
        events = [Event("x", "gaussian", 1 / gaussian.mu_of(epsilon, delta), 1.0)]
        return build_ledger(events, Budget(str(epsilon), delta), n=1000, unit="record", noise="secure")

    book = Spending(tmp_path / "spent.jsonl", ceiling="2.5")
    book.record("own", "a", 0, ledger(2, 1e-5), "r")
    in_all = gaussian.epsilon_of(math.hypot(gaussian.mu_of(2, 1e-5), gaussian.mu_of(1.5, 0.01)), 1e-5)
    loose = gaussian.epsilon_of(math.hypot(gaussian.mu_of(2, 1e-5), gaussian.mu_of(1.5, 0.01)), 0.01)
    assert loose < 2.5 < in_all
    with pytest.raises(StudyError, match=rf"spent ε = {in_all:.2f}\d* at δ = 1e-5, the smallest so far.*before it 2"):
        book.record("own", "b", 0, ledger(1.5, 0.01), "r")
    book.record("own", "b", 0, ledger(0.05, 0.01), "r")
    assert book.smallest_delta("own", 0.01, "r") == 1e-5 and book.smallest_delta("own", 1e-7, "r") == 1e-7
    assert book.smallest_delta("other", 0.01, "others") == 0.01
    poor = Spending(book.path, ceiling="2")
    assert poor.before("own", 0.01, "r", EACH) < 2 and poor.hopeless("own", "c", "1", 0.01, "r", EACH), (
        "at δ = 0.01 it would fit"
    )


def test_what_cannot_keep_the_ceiling_is_told_before_it_begins(tmp_path):
    """By what was spent on the same records alone, and not where there is room, however little."""
    spent = gaussian.epsilon_of(math.sqrt(2) / 7, 1e-5)
    Spending(tmp_path / "spent.jsonl").record("a", "a/b/c/eps=1", [0, 1], LEDGER, "x")
    cell = ("a/b/d/eps=1", "1", 1e-5)
    used_up, room = (Spending(tmp_path / "spent.jsonl", ceiling=str(spent * share)) for share in (0.999, 1.001))
    assert used_up.hopeless("a", *cell, "x", EACH).startswith("cell a/b/d/eps=1: nothing is left of release: {budget: ")
    assert "nothing is left of release: {budget: " in used_up.hopeless("z", *cell, "x", EACH), (
        "the same records under another name"
    )
    assert used_up.hopeless("z", *cell, "y", EACH) == room.hopeless("a", *cell, "x", EACH) == ""
    assert Spending(tmp_path / "spent.jsonl").hopeless("a", *cell, "x", EACH) == "", "no ceiling"
    assert "without noise it has no bound" in room.hopeless("z", "z/b/c/eps=inf", "inf", 1e-5, "y", EACH)
    room.record("a", "a/b/e/eps=1", 0, LEDGER | {"epsilon": 0}, "w", training="t")  # begun
    begun = Spending(tmp_path / "spent.jsonl", ceiling="1e-9")
    assert begun.hopeless("a", "a/b/e/eps=1", "1", 1e-5, "w", EACH) == "", "it goes on, and is written down already"
    assert begun.hopeless("a", "a/b/f/eps=1", "1", 1e-5, "w", EACH)


def test_what_protects_records_has_no_sum_for_persons_before_anything_begins(tmp_path):
    """A person with k images has more than their epsilon; what protects persons protects each of their records."""
    book = Spending(tmp_path / "spent.jsonl", ceiling="9")
    for unit, ledger in (("record", LEDGER), ("subject", PERSONS)):
        book.record("a", f"a/b/{unit}/eps=1", 0, ledger, unit)
        assert book.before("a", 1e-5, unit, EACH) == pytest.approx(gaussian.epsilon_of(1 / 7, 1e-5), rel=1e-4)
    assert book.before("a", 1e-5, "subject", PERSON) == book.before("a", 1e-5, "subject", EACH)
    assert "bound nothing for persons" in book.before("a", 1e-5, "record", PERSON)
    book.record("a", "a/b/one/eps=1", 0, PERSONS | {"bounds": {"records": 1}}, "one of each")
    assert book.before("a", 1e-5, "one of each", PERSON) == book.before("a", 1e-5, "subject", PERSON)
    assert "less of a record than of a person" in book.before("a", 1e-5, "one of each", EACH), "another takes its place"
    assert book.hopeless("a", "x", "1", 1e-5, "record", EACH) == ""
    assert book.hopeless("a", "x", "1", 1e-5, "record", PERSON) == (
        "cell x: trainings before it protect single records and bound nothing for persons: nobody can tell whether it "
        "keeps release: {budget: 9}"
    )
    Spending(book.path).record("a", "n", 0, LEDGER | {"guarantee": "none"}, "none")
    assert "cell x: trainings without a guarantee stand" in book.hopeless("a", "x", "1", 1e-5, "none", EACH)


def test_persons_told_apart_by_another_column_are_others(tmp_path):
    """A patient with three visits has three times what a guarantee per visit says."""
    book, visits = Spending(tmp_path / "spent.jsonl", ceiling="9"), PERSONS["bounds"] | {"persons": "visit"}
    book.record("a", "a/b/visit/eps=1", 0, PERSONS | {"bounds": visits}, "r")
    one = book.before("a", 1e-5, "r", EACH)
    assert one == book.before("a", 1e-5, "r", Protected("subject", "visit")) == book.before("a", 1e-5, "r", PERSON) > 0
    patients = Protected("subject", "patient")
    assert book.before("a", 1e-5, "r", patients) == (
        "trainings before it tell persons apart by 'visit', not 'patient', and bound nothing for these (if both are "
        "the same persons, give the column the name that it had)"
    )
    assert "nobody can tell whether it keeps" in book.hopeless("a", "x", "1", 1e-5, "r", patients)
    of_patients = PERSONS | {"bounds": PERSONS["bounds"] | {"persons": "patient"}}
    with pytest.raises(StudyError, match="tell persons apart by 'visit', not 'patient'"):
        book.afford("a", "a/b/c/eps=1", [0], of_patients, "r")
    for name, content in (("ledger", of_patients), ("run", {"seeds": [{}]})):
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    cells = [{"dataset": "a", "ledger": str(tmp_path / "ledger.json"), "run": str(tmp_path / "run.json")}]
    write_totals(cells, {"a": "1e-5"}, str(tmp_path / "total.json"), book, {"a": "r"})
    counted = read_json(tmp_path / "total.json")["datasets"]["a"]
    assert counted["spent"] is None and counted["by_other_persons"] == 1
    assert "1 more tell persons apart by another column: of these they bound nothing" in uncounted_in_words(counted)


def test_jobs_that_end_at_once_do_not_pass_the_ceiling_together(tmp_path):
    jobs = [multiprocessing.get_context("fork").Process(target=_write_below, args=(tmp_path / "s", j)) for j in "abc"]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()
    assert len(list(Spending(tmp_path / "s").entries())) == 5


def test_the_total_knows_what_is_gone(tmp_path):
    for seed in range(3):
        Spending(tmp_path / "spent.jsonl").record("a", "a/b/gone/eps=1", seed, LEDGER)
    for name, content in (("ledger", LEDGER), ("run", {"seeds": [{}]})):
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    cell = {"dataset": "a", "ledger": str(tmp_path / "ledger.json"), "run": str(tmp_path / "run.json")}
    write_totals([cell], {"a": "1e-5", "b": "1e-5"}, str(tmp_path / "total.json"), Spending(tmp_path / "spent.jsonl"))
    found = read_json(tmp_path / "total.json")["datasets"]["a"]
    assert found["cells"] == 1 and found["spent"]["seeds"] == 3 and found["spent"]["epsilon"] > found["epsilon"] > 0


def test_entries_that_read_the_same_records_are_added_up_too(tmp_path):
    """Each under its own name would be told half of what both tell of a record."""
    documents = {"record": LEDGER, "subject": PERSONS | {"not_accounted": ["A thing."]}}
    cells = []
    for name, unit in (("a", "record"), ("b", "record"), ("c", "subject"), ("elsewhere", "record")):
        (tmp_path / f"{name}.json").write_text(json.dumps(documents[unit]))
        (tmp_path / f"{name}-run.json").write_text(json.dumps({"seeds": [{}]}))
        cells.append({"dataset": name, "ledger": tmp_path / f"{name}.json", "run": tmp_path / f"{name}-run.json"})
    known = dict.fromkeys("abc", "r1") | {"elsewhere": "r2"}
    write_totals(cells, dict.fromkeys(known, "1e-5"), str(tmp_path / "total.json"), None, known)
    found = read_json(tmp_path / "total.json")["datasets"]
    assert "together" not in found["elsewhere"] and found["elsewhere"]["epsilon"] == found["a"]["epsilon"]
    both = found["a"]["together"]
    assert (both["with"], both["seeds"], both["not_accounted"]) == (["b", "c"], 3, ["A thing."])
    mu = math.sqrt(3) / 7.0
    assert both["epsilon"] == pytest.approx(certify([Event("", "gaussian", 1 / mu, 1.0)], 1e-5).epsilon)
    assert found["c"]["together"]["seeds"] == 1 and found["c"]["together"]["by_record"] == 2
    assert found["c"]["together"]["epsilon"] is None, "of persons nobody can tell"
    assert found["c"]["unit"] == "subject" and found["a"]["unit"] == "record"
    said = total_in_words(found["c"])
    assert "With a, b, which may have the same records: 1 cells" in said and "2 more protected single records" in said
    assert "Not accounted for: what total.json names." in said


def test_a_sum_says_what_its_ledgers_say_beside_epsilon():
    ledgers = [(LEDGER | {"noise": "seeded", "not_accounted": ["x", "y"]}, 1), (LEDGER | {"adjacency": "zero-out"}, 2)]
    found = total(ledgers, 1e-5)
    assert found["adjacencies"] == ["add-remove-one", "zero-out"] and found["noise"] == ["seeded", "secure"]
    said = total_in_words(found)
    assert "leaving one place empty (zero-out)" in said and "seeded: not for release" in said
    assert "Not accounted for: 2 things, which total.json names." in said
    assert total_in_words(total([(LEDGER, 1)], 1e-5)).endswith("exact Gaussian DP).")


def test_a_total_does_not_outlive_what_was_spent_since(tmp_path):
    (tmp_path / "total.json").write_text("{}")
    refusing = Spending(tmp_path / "spent.jsonl", ceiling="0.1")
    with pytest.raises(StudyError, match="beyond release"):
        refusing.record("a", "a/b/c/eps=1", 0, LEDGER)
    assert (tmp_path / "total.json").exists(), "nothing was spent"
    Spending(tmp_path / "spent.jsonl").record("a", "a/b/c/eps=1", 0, LEDGER)
    assert not (tmp_path / "total.json").exists()


def test_only_secure_noise_is_written_down(tmp_path):
    path = str(tmp_path / "spent.jsonl")
    assert request_of(FIRST_ORDER, noise="seeded", spent=path).spending is None
    assert request_of(FIRST_ORDER, noise="secure").spending is None
    assert isinstance(request_of(FIRST_ORDER, noise="secure", spent=path).spending, Spending)


def test_records_are_known_by_what_is_read_and_not_by_what_a_study_calls_them(tmp_path):
    """A data set under a new name has spent what it spent under the old one; of others nothing is forgotten."""
    book = Spending(tmp_path / "spent.jsonl")
    one = PERSONS | {"bounds": {"records": 1}}
    for dataset, ledger, records in (("old", LEDGER, "r1"), ("old", PERSONS, "r1"), ("gone", one, "r2")):
        book.record(dataset, f"{dataset}/b/c/eps=1", 0, ledger, records)
    for name, content in (("record", LEDGER), ("subject", PERSONS), ("run", {"seeds": [{}]})):
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    cells = [
        {"dataset": f"by {unit}", "ledger": str(tmp_path / f"{unit}.json"), "run": str(tmp_path / "run.json")}
        for unit in ("record", "subject")
    ]
    names = [cell["dataset"] for cell in cells]
    write_totals(
        cells, dict.fromkeys(names, "1e-5"), str(tmp_path / "total.json"), Spending(tmp_path / "spent.jsonl"),
        dict.fromkeys(names, "r1"),
    )  # fmt: skip
    found = read_json(tmp_path / "total.json")
    by_record, by_subject = (found["datasets"][name] for name in names)
    assert by_record["spent"]["seeds"] == 2 and "by_record" not in by_record
    assert by_subject["spent"]["seeds"] == 1 and by_subject["by_record"] == 1
    assert by_record["spent"]["epsilon"] > by_subject["spent"]["epsilon_of_proved"] > 0.5
    assert by_subject["spent"]["epsilon"] is None, "of persons nobody can tell"
    assert found["others"].keys() == {"gone"} and found["others"]["gone"]["spent"]["seeds"] == 1
    write_totals(
        cells[:1], {names[0]: "1e-5", "gone": "1e-5"}, str(tmp_path / "total.json"), Spending(tmp_path / "spent.jsonl"),
        {names[0]: "r1", "gone": "r2"},
    )  # fmt: skip
    found = read_json(tmp_path / "total.json")
    assert found["others"].keys() == {"gone"}, "a data set of the study without a cell of its own"
    assert "1 more protected single records only: of persons they bound nothing" in uncounted_in_words(by_subject)
    book.record("old", "old/b/d/eps=1", 0, one, "r1")
    write_totals(cells[:1], {names[0]: "1e-5"}, str(tmp_path / "total.json"), book, {names[0]: "r1"})
    counted = read_json(tmp_path / "total.json")["datasets"][names[0]]
    assert (counted["spent"]["seeds"], counted["spent"]["epsilon"], counted["by_person"]) == (2, None, 1)
    assert "1 more learned from one record of each person: of a record they bound less" in uncounted_in_words(counted)
    assert spent_in_words(None) == ""


def test_the_same_folder_is_the_same_records_whatever_is_made_of_them(tmp_path, monkeypatch):
    monkeypatch.setenv("DPSTUDY_DATA", str(tmp_path))
    config = {
        "datasets": {
            "a": {"reader": "image_table", "location": "x", "size": [8, 8]},
            "b": {"reader": "image_table", "location": "x/../x", "unit": "subject"},
            "c": {"reader": "image_table", "location": "y"},
            1: {"reader": "digits"},
        }
    }
    found = {name: records_of(config, name) for name in ("a", "b", "c", "1")}
    assert found["a"] == found["b"] and len(set(found.values())) == 3
    config["datasets"] |= {
        "by another reader": {"reader": "image_folder", "location": "x"},
        "enlarged": {"reader": "cifar", "location": "z", "extra": {"reader": "image_folder", "location": "y"}},
        "not enlarged": {"reader": "cifar", "location": "z"},
        "around": {"reader": "image_table", "location": "p"},
        "within": {"reader": "image_folder", "location": "p/q/r"},
        "beside": {"reader": "image_folder", "location": "p/s"},
    }
    found = {name: records_of(config, str(name)) for name in config["datasets"]}
    for line, others in {
        "a": {"a", "b", "by another reader"},
        "c": {"c", "enlarged"},
        "enlarged": {"c", "enlarged", "not enlarged"},
        1: {1},
        "around": {"around", "within", "beside"},
        "within": {"within", "around"},
    }.items():
        entry = {"dataset": "whatever it was called", "records": found[line]}
        assert {name for name in found if about(entry, str(name), found[name])} == others
    old = {"dataset": "", "records": hashlib.sha256(f"image_table {tmp_path / 'x'}".encode()).hexdigest()[:16]}
    assert about(old, "a", found["a"]) and not about(old, "c", found["c"]), "a line of an earlier version"


def test_images_behind_a_link_are_the_images_that_it_leads_to(tmp_path):
    """Of a folder, of a folder within, of a file, of a chain; a link that stays inside leads nowhere else."""
    for name in ("mine/images", "mine/more", "other/images", "linked", "files", "chain", "inside/images", "far"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "mine/images/1.png").touch()
    (tmp_path / "linked/images").symlink_to("../mine/images")
    (tmp_path / "files/2.png").symlink_to("../mine/images/1.png")
    (tmp_path / "chain/images").symlink_to("../linked/images")
    (tmp_path / "inside/again").symlink_to("images")
    (tmp_path / "whole").symlink_to("mine")
    for number in range(70):
        (tmp_path / f"mine/images/{number}").mkdir()
        (tmp_path / f"far/{number}").symlink_to(f"../mine/images/{number}")
    names = ("mine", "mine/more", "other", "linked", "files", "chain", "inside", "whole", "far")
    entries = {name: {"reader": "image_folder", "location": name} for name in names}
    config = {"datasets": entries, "data_root": str(tmp_path)}
    found = {name: records_of(config, name) for name in names}

    def together(name):
        line = {"dataset": "", "records": found[name]}
        return {other for other in names if about(line, "x", found[other])}

    behind = {"mine", "linked", "files", "chain", "whole", "far"}
    assert together("mine") == behind | {"mine/more"}
    assert all(together(name) == behind for name in ("linked", "files", "chain", "far"))
    assert together("other") == {"other"} and together("inside") == {"inside"}
    for name in names:  # the first name, by which old books know whose rows go by number, is as it was
        assert found[name].partition("+")[0] == records_of(config, name, links=False).partition("+")[0]


def test_a_model_that_was_paid_for_is_not_overwritten(tmp_path):
    book, path = Spending(tmp_path / "spent.jsonl"), tmp_path / "ledger.json"
    due = [Due(f"a/b/{name}/eps=1", [0], str(path)) for name in "cd"]
    guard(due, book, secure=True)
    path.write_text(json.dumps(LEDGER))
    for secure in (True, False):
        with pytest.raises(
            StudyError, match=r"nothing was run: cell a/b/c/eps=1: its model.*\(1 more cells likewise\)"
        ):
            guard(due, book, secure)
    guard(due, Spending(tmp_path / "spent.jsonl", again=True), secure=True)
    path.write_text(json.dumps(LEDGER | {"noise": "seeded"}))
    guard(due, book, secure=True)
    book.record("a", "a/b/d/eps=1", 0, LEDGER)
    guard(due, book, secure=False)
    with pytest.raises(StudyError, match="nothing was run: cell a/b/d/eps=1: it was trained with secure noise"):
        guard(due, book, secure=True)
