"""The book beside the data: a budget holds over all folders that spend on the same records."""

import json
import math
import multiprocessing
import os
import shutil

import pytest

from dpstudy.core.errors import StudyError
from dpstudy.jobs.totals import write_totals
from dpstudy.privacy import gaussian, spending
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.data_book import NAME, DataBook
from dpstudy.privacy.events import Event
from dpstudy.privacy.ledger import build_ledger
from dpstudy.privacy.spending import BeyondBudgetError, Spending
from dpstudy.privacy.spent_lines import read_lines

LEDGER = build_ledger([Event("gram", "gaussian", 7.0, 1.0)], Budget("1", 1e-5), n=1000, unit="record", noise="secure")


def cost(trainings):
    """Epsilon of so many trainings together, by the closed form."""
    return gaussian.epsilon_of(math.sqrt(trainings) / 7, 1e-5)


def between(fewer):
    """A ceiling that so many trainings keep, and one more does not."""
    return str((cost(fewer) + cost(fewer + 1)) / 2)


@pytest.fixture
def folder(tmp_path):
    """The book of a folder, by its name, beside the others' data."""
    (tmp_path / "data").mkdir()

    def made(name, **options):
        return Spending(tmp_path / name / "spent.jsonl", shared=[tmp_path / "data" / NAME], **options)

    return made


def test_a_budget_holds_over_two_folders(folder):
    for seed in range(2):
        folder("one").record("a", "a/b/c/eps=1", seed, LEDGER, "r1")
    folder("two", ceiling=between(2)).afford("x", "x/b/c/eps=1", [0], LEDGER, "other records")
    with pytest.raises(BeyondBudgetError, match="trainings would have spent ε = "):
        folder("two", ceiling=between(2)).record("x", "x/b/c/eps=1", 0, LEDGER, "r1")
    assert not (folder("two").path).exists() and len(folder("two").everywhere()) == 2
    folder("two", ceiling=between(3)).record("x", "x/b/c/eps=1", 0, LEDGER, "r1")
    assert len(folder("one").everywhere()) == len(folder("two").everywhere()) == 3
    assert len(list(folder("two").entries())) == 1


def test_another_folder_s_training_of_the_same_name_is_no_second_one_of_this(folder):
    folder("one").record("a", "a/b/c/eps=1", 0, LEDGER, "r1")
    folder("two").check("a/b/c/eps=1", [0])
    with pytest.raises(StudyError, match=f"remove its lines from .*one/spent.jsonl and .*data/{NAME}"):
        folder("one").check("a/b/c/eps=1", [0])


def test_a_folder_that_is_moved_or_copied_counts_once_and_what_the_copy_spends_counts(folder, tmp_path):
    folder("one").record("a", "a/b/c/eps=1", 0, LEDGER, "r1")
    shutil.copytree(tmp_path / "one", tmp_path / "copy")
    (tmp_path / "one").rename(tmp_path / "moved")
    assert len(folder("moved").everywhere()) == len(folder("copy").everywhere()) == 1
    folder("copy").record("a", "a/b/c/eps=1", 1, LEDGER, "r1")
    assert len(folder("moved").everywhere()) == 2


def test_a_folder_that_is_deleted_stays_spent(folder, tmp_path):
    folder("one").record("a", "a/b/c/eps=1", 0, LEDGER, "r1")
    shutil.rmtree(tmp_path / "one")
    with pytest.raises(BeyondBudgetError):
        folder("one", ceiling=between(1)).record("a", "a/b/c/eps=1", 0, LEDGER, "r1")


def test_what_an_earlier_version_wrote_is_told_once(folder, tmp_path):
    Spending(tmp_path / "one" / "spent.jsonl").record("a", "a/b/c/eps=1", [0, 1], LEDGER, "r1")
    lines = [json.loads(line) for line in (tmp_path / "one/spent.jsonl").read_text().splitlines()]
    for line in lines:
        del line["id"]
    (tmp_path / "one/spent.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert folder("two").everywhere() == []
    for _ in range(2):
        folder("one").tell_others()
    assert folder("two").everywhere() == lines == folder("one").everywhere()


def test_a_death_before_the_folder_s_own_line_leaves_too_much_and_never_too_little(folder, monkeypatch):
    class Death(BaseException):
        pass

    def die(*_args, **_options):
        raise Death

    with monkeypatch.context() as dying:
        dying.setattr(spending, "atomic", die)  # of the folder's own book
        with pytest.raises(Death):
            folder("one").record("a", "a/b/c/eps=1", 0, LEDGER, "r1")
    assert not folder("one").path.exists()
    with pytest.raises(BeyondBudgetError):
        folder("two", ceiling=between(1)).afford("a", "a/b/c/eps=1", [0], LEDGER, "r1")


@pytest.mark.parametrize(
    "what", [{"files": {"model": "x"}, "known": 0}, {"training": "t1"}, {"training": "t1", "failed": "diverged"}]
)
def test_what_a_death_kept_out_of_a_folder_s_own_log_is_copied_there_and_counts_once(folder, monkeypatch, what):
    with monkeypatch.context() as dying:
        dying.setattr(spending, "atomic", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            folder("one", ceiling=between(2)).record("a", "a/b/c/eps=1", [0, 1], LEDGER, "r1", folders=["/x"], **what)
    (lines := folder("one").everywhere())
    again = folder("one", ceiling=between(2))
    again.record("a", "a/b/c/eps=1", [0, 1], LEDGER, "r1", folders=["/x"], **what)
    assert list(again.entries()) == [{key: value for key, value in line.items() if key != "lost"} for line in lines]
    assert len(again.everywhere()) == len(again.shared[0].entries()) == 2
    with pytest.raises(BeyondBudgetError):
        again.record("a", "a/b/c/eps=1", [0, 1], LEDGER, "r1", files={"model": "y"}, training="t2")


def test_begun_elsewhere_counts_until_it_has_ended(folder):
    folder("one").record("a", "a/b/c/eps=1", 0, LEDGER, "r1", training="t1")
    assert len(folder("two").everywhere()) == 1
    folder("one").record("a", "a/b/c/eps=1", 0, LEDGER, "r1", training="t1", files={"model": "x"})
    (line,) = folder("two").everywhere()
    assert line["files"] == {"model": "x"}


def spend(paths, ceiling, start, cell):
    start.wait()
    try:
        Spending(paths[0], ceiling=ceiling, shared=[paths[1]]).record("a", cell, 0, LEDGER, "r1")
    except BeyondBudgetError:
        os._exit(3)
    os._exit(0)


def test_of_folders_that_spend_at_once_no_more_than_the_budget_pass(tmp_path):
    (tmp_path / "data").mkdir()
    context = multiprocessing.get_context("fork")
    start, shared = context.Event(), tmp_path / "data" / NAME
    jobs = [
        context.Process(
            target=spend, args=((tmp_path / str(job) / "spent.jsonl", shared), between(3), start, f"c{job}")
        )
        for job in range(8)
    ]
    for job in jobs:
        job.start()
    start.set()
    for job in jobs:
        job.join()
    assert sorted(job.exitcode for job in jobs) == [0] * 3 + [3] * 5
    assert len(list(read_lines(shared))) == 3


def test_a_damaged_book_refuses(folder, tmp_path):
    (tmp_path / "data" / NAME).write_text("{")
    for ask in (folder("one", ceiling="9").everywhere, folder("one").tell_others):
        with pytest.raises(StudyError, match=f"{NAME}: line 1 is damaged"):
            ask()
    with pytest.raises(StudyError, match="damaged"):
        folder("one").record("a", "a/b/c/eps=1", 0, LEDGER, "r1")
    assert not folder("one").path.exists()


def test_a_book_that_cannot_be_written_refuses(tmp_path, monkeypatch):
    missing = DataBook(tmp_path / "no such folder" / NAME)
    with pytest.raises(StudyError, match=r"cannot be written, and what secure noise.*release: {book: FILE}"):
        missing.check()
    with pytest.raises(StudyError, match=r"cannot be written.*release: {book: FILE}"), missing.locked():
        pass
    there = DataBook(tmp_path / NAME)
    there.check()

    def without_locks(*_args):
        raise OSError(37, "No locks available")

    monkeypatch.setattr("dpstudy.privacy.data_book.fcntl.flock", without_locks)
    with pytest.raises(StudyError, match="cannot be locked"), there.locked():
        pass


def test_of_a_log_in_a_folder_that_does_not_exist_it_is_said(tmp_path):
    missing = DataBook(tmp_path / "nosuch" / NAME)
    with pytest.raises(StudyError, match=r"; there is no folder \S+/nosuch: make it, or name another file that"):
        missing.check()
    with pytest.raises(StudyError, match=r"there is no folder \S+/nosuch: make it"), missing.locked():
        pass
    (tmp_path / "nosuch").mkdir()
    missing.check()


def test_a_log_that_a_colleague_may_not_read_or_lock_is_a_sentence_with_a_remedy(folder, tmp_path, monkeypatch):
    """The one who began it runs with a closed umask: log and lock are open to them alone."""
    folder("one").record("a", "a/b/c/eps=1", 0, LEDGER, "r1")
    book, reading, opening = DataBook(tmp_path / "data" / NAME), type(tmp_path).read_bytes, os.open

    def read(path):
        if path.name == NAME:
            raise PermissionError(13, "Permission denied", str(path))
        return reading(path)

    def opened(path, *more):
        if str(path).endswith(f".{NAME}.lock"):
            raise PermissionError(13, "Permission denied", str(path))
        return opening(path, *more)

    with monkeypatch.context() as colleague:
        colleague.setattr(type(tmp_path), "read_bytes", read)
        with pytest.raises(StudyError, match=rf"^\S+/{NAME}: cannot be read \(Permission.*release: {{book: FILE}}$"):
            folder("two").everywhere()
    with monkeypatch.context() as colleague:
        colleague.setattr("os.open", opened)
        with pytest.raises(StudyError, match=rf"/\.{NAME}\.lock: cannot be written \(.*release: {{book: FILE}}$"):
            folder("two").tell_others()
    monkeypatch.setattr("os.access", lambda path, mode: not str(path).endswith(".lock"))
    with pytest.raises(StudyError, match=rf"/\.{NAME}\.lock: cannot be written, and {NAME} is locked by it; let it be"):
        book.check()


def test_a_folder_in_the_place_of_a_log_is_a_sentence(tmp_path):
    for log in (DataBook(tmp_path).entries, Spending(tmp_path).trainings):
        with pytest.raises(StudyError, match=r"cannot be read \(Is a directory\), and what was spent is written down"):
            log()


def test_who_may_read_it_stays(folder, tmp_path):
    folder("one").record("a", "a/b/c/eps=1", 0, LEDGER, "r1")
    book = tmp_path / "data" / NAME
    assert book.stat().st_mode & 0o777 == 0o600
    book.chmod(0o660)
    folder("two").record("a", "a/b/c/eps=1", 0, LEDGER, "r1")
    assert book.stat().st_mode & 0o777 == 0o660


def test_the_total_of_a_folder_has_what_others_spent(folder, tmp_path):
    folder("one").record("a", "a/b/c/eps=1", 0, LEDGER, "r1")
    folder("two").record("a", "a/b/c/eps=1", 0, LEDGER, "r1")
    folder("one").record("hiv-ward", "hiv-ward/b/c/eps=1", 0, LEDGER, "r2")
    folder("two").record("before", "before/b/c/eps=1", 0, LEDGER, "r3")
    for name, content in (("ledger", LEDGER), ("run", {"seeds": [0]})):
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    cells = [{"dataset": "a", "ledger": str(tmp_path / "ledger.json"), "run": str(tmp_path / "run.json")}]
    write_totals(cells, {"a": "1e-5"}, str(tmp_path / "total.json"), folder("two"), {"a": "r1"})
    found = json.loads((tmp_path / "total.json").read_text())
    assert found["others"].keys() == {"before"}, "what other folders learned from is not this one's to publish"
    spent = found["datasets"]["a"]["spent"]
    assert spent["seeds"] == 2 and spent["epsilon"] == pytest.approx(cost(2), rel=1e-6)
