"""A training that secure noise pays for is in the store before the book has it, and taken from there ever after."""

import json
import os
import shutil
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest

from dpstudy.cell import paid_training
from dpstudy.cell.inputs import CellInputs
from dpstudy.cell.paid_models import Due, PaidModels, guard
from dpstudy.cell.paid_training import take, take_or_train
from dpstudy.core.errors import StudyError
from dpstudy.core.files import write_tensors
from dpstudy.features import shards
from dpstudy.jobs import training
from dpstudy.jobs.scoring import score_cell
from dpstudy.jobs.training import train_cell
from dpstudy.privacy import spending
from dpstudy.privacy.paid_store import PaidStore
from dpstudy.privacy.spending import BeyondBudgetError, Spending
from tests.unit.tuning.conftest import FIRST_ORDER, request_of, write_split

OPTIONS = FIRST_ORDER | {"learning_rate": 0.1}
NAMES = ("model.safetensors", "run.json", "scores.parquet", "ledger.json", "curve.parquet")


@pytest.fixture
def paying(tmp_path):
    """A request with a book, its inputs, and its outputs."""
    rng = np.random.default_rng(3)
    for split, rows in (("train", 60), ("test", 20)):
        write_split(tmp_path / "features", split, rng.standard_normal((rows, 4)), rng.integers(3, size=rows))
    request = request_of(OPTIONS | {"steps": 2}, noise="secure", spent=str(tmp_path / "privacy/spent.jsonl"))
    inputs = CellInputs((str(tmp_path / "features/train"),), str(tmp_path / "features/test"))
    outputs = {name.partition(".")[0]: str(tmp_path / "cell" / name) for name in NAMES}
    return request, inputs, outputs


def lines_of(request):
    return list(request.spending.entries())


def contents(outputs):
    return {path: open(path, "rb").read() for path in outputs.values()}


def due_of(request, outputs):
    return Due(request.cell.path, request.seeds, outputs["ledger"], outputs, request.fingerprint)


def test_a_training_is_taken_as_it_is_and_books_nothing(paying):
    request, inputs, outputs = paying
    assert not take(request, inputs, outputs), "nothing was paid for yet"
    train_cell(request, inputs, outputs)
    before, (line,) = contents(outputs), lines_of(request)
    assert set(line["files"]) == set(NAMES)
    shutil.rmtree(os.path.dirname(outputs["run"]))
    assert take(request, inputs, outputs)
    assert contents(outputs) == before and lines_of(request) == [line]
    open(outputs["model"], "ab").write(b"more")
    assert take(request, inputs, outputs) and contents(outputs) == before, "an output is a copy"


def test_a_death_after_the_book_s_line_loses_nothing(paying, monkeypatch):
    request, inputs, outputs = paying

    def die(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(paid_training, "publish", die)
        train_cell(request, inputs, outputs)
    (line,) = lines_of(request)
    assert not os.path.exists(outputs["model"])
    assert take(request, inputs, outputs) and lines_of(request) == [line] and all(map(os.path.exists, outputs.values()))


def test_a_death_between_the_two_logs_pays_once(paying, monkeypatch, tmp_path):
    """The log beside the data has the line; with a budget that it uses up, the same command is let through."""
    request, inputs, outputs = paying
    (tmp_path / "data").mkdir()
    request = replace(request, shared=[str(tmp_path / "data" / "log.jsonl")], ceiling="1.2", records="r")
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(spending, "atomic", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        train_cell(request, inputs, outputs)
    assert not lines_of(request) and len(request.spending.everywhere()) == 1
    due = due_of(request, outputs)
    assert PaidModels(request.spending).has(due), "not due: nothing is refused beforehand"
    assert guard([due], request.spending, secure=True)
    take_or_train(request, inputs, outputs, lambda: pytest.fail("it is paid for"))
    assert lines_of(request) == request.spending.everywhere() and len(lines_of(request)) == 1
    other = replace(request, cell=replace(request.cell, entry="other"))
    with pytest.raises(BeyondBudgetError):
        take_or_train(other, inputs, outputs, lambda: train_cell(other, inputs, outputs))


def test_what_the_book_refuses_is_not_kept(paying, monkeypatch):
    request, inputs, outputs = paying

    def refuse(*_, **__):
        raise BeyondBudgetError("refused")

    monkeypatch.setattr(Spending, "record", refuse)
    with pytest.raises(StudyError, match="refused"):
        train_cell(request, inputs, outputs)
    assert not list((request.spending.path.parent / "paid").rglob("*.safetensors")) and not os.path.exists(
        outputs["run"]
    )


DIVERGES = OPTIONS | {"steps": 4, "learning_rate": 1e300}


def test_a_training_that_fails_after_noise_was_drawn_is_paid_for_and_not_begun_again(paying):
    """Whether it fails depends on the noise and the records: drawing anew until it does not would be a choice."""
    request, inputs, outputs = paying
    request = request_of(DIVERGES, noise="secure", spent=request.spent)
    with pytest.raises(StudyError, match="diverged"):
        take_or_train(request, inputs, outputs, lambda: train_cell(request, inputs, outputs))
    (line,) = lines_of(request)
    assert (
        "diverged" in line["failed"] and line["ledger"]["epsilon"] == pytest.approx(1, rel=1e-3) and line["seed"] == 0
    )
    for options in (DIVERGES, OPTIONS):  # of other settings it would be of the same cell, and as much again
        other = request_of(options, noise="secure", spent=request.spent)
        with pytest.raises(
            StudyError, match=r"with secure noise failed on 20.*\(first_order: diverged.* spends as much again"
        ):
            train_cell(other, inputs, outputs)
        with pytest.raises(StudyError, match="nothing was run: .* failed on 20"):
            guard([due_of(other, outputs)], other.spending, secure=True)
    assert lines_of(request) == [line]
    again = request_of(OPTIONS, noise="secure", spent=request.spent, spend_again=True)
    take_or_train(again, inputs, outputs, lambda: train_cell(again, inputs, outputs))
    assert len(again.spending.trainings()) == 2
    assert take(again, inputs, outputs), "the one that did not fail"


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), MemoryError()])
def test_what_the_machine_failed_at_is_not_paid_for(paying, monkeypatch, error):
    """It tells nothing of the noise."""
    request, inputs, outputs = paying

    def fails(*_):
        try:
            raise error
        except type(error):
            raise StudyError("a sentence about it") from None

    monkeypatch.setattr(training, "check_fit", fails)
    with pytest.raises(StudyError, match="a sentence about it"):
        train_cell(request, inputs, outputs)
    assert not lines_of(request)
    monkeypatch.setattr(training, "check_fit", lambda *_: (_ for _ in ()).throw(ValueError("of the method's own")))
    with pytest.raises(ValueError, match="own"):
        train_cell(request, inputs, outputs)
    assert len(lines_of(request)) == 1


def test_what_fails_before_noise_is_drawn_is_not_paid_for(paying, monkeypatch):
    request, inputs, outputs = paying
    monkeypatch.setattr(training.Monitor, "__init__", lambda *_: (_ for _ in ()).throw(StudyError("before")))
    with pytest.raises(StudyError, match="before"):
        train_cell(request, inputs, outputs)
    assert not lines_of(request)


def test_of_a_training_that_failed_no_checkpoint_is_left_to_go_on_from(paying, monkeypatch):
    request, inputs, outputs = paying
    request = replace(request, checkpoint="unused")
    checkpoint = paid_training.checkpoint_of(request)
    told = {"config": request.fingerprint, "library": request.library, "data": inputs.hashes(), "seed": 0}

    def write_checkpoint(name):
        write_tensors(checkpoint, {"weights": np.zeros(1)}, {"training": name, "made_by": json.dumps(told)})

    class Kept:
        training, curve, seconds = "t1", [], 0.0

    def keep(request, parameters, made, ledger):
        write_checkpoint("t1")
        request.spending.record("toy", request.cell.path, 0, ledger, training="t1")
        return Kept()

    fit = training.methods.load(request.options["method"]).fit

    def diverges(*given, keeper, **more):
        fit(*given, **more)
        raise StudyError("diverged")

    monkeypatch.setattr(training, "keeper_of", keep)
    monkeypatch.setattr(training.methods.load(request.options["method"]), "fit", diverges)
    with pytest.raises(StudyError, match="diverged"):
        train_cell(request, inputs, outputs)
    assert not checkpoint.exists()
    assert [line.get("failed") is not None for line in lines_of(request)] == [False, True]
    assert len(request.spending.trainings()) == 1, "one training, from its first checkpoint to its end"
    write_checkpoint("t1")  # as if the process had died before it removed it
    again = replace(request, spend_again=True)
    assert paid_training.resumed(again, inputs) is None and not checkpoint.exists()


def test_no_test_record_decides_whether_a_model_is_kept(paying, tmp_path):
    """A private test record may be such that its score overflows: the model is paid for and kept, and said to be of no
    use where it is scored."""
    request, inputs, outputs = paying
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((20, 4)).astype(np.float32)
    rows[7] = 3e38
    write_split(tmp_path / "features", "test", rows, rng.integers(3, size=20))
    request = request_of(OPTIONS | {"steps": 2, "learning_rate": 1e4}, noise="secure", spent=request.spent)
    train_cell(request, inputs, outputs)
    assert len(lines_of(request)) == 1 and os.path.exists(outputs["model"])
    assert pq.read_table(outputs["curve"]).num_rows == 0, "at no step all scores were finite"
    asked = {"metrics": ["top1"], "intervals": 0, "smallest_group": 20, "small_groups": "merge"}
    with pytest.raises(StudyError, match=r"row 7 has a score that is NaN or infinite \(1 of 20 rows do\)"):
        score_cell(outputs["run"], [outputs["scores"]], asked, "", str(tmp_path / "metrics.json"))


def test_what_may_be_trained_again_is_taken_where_nothing_was_changed(paying):
    request, inputs, outputs = paying
    train_cell(request, inputs, outputs)
    before, request = contents(outputs), replace(request, spend_again=True)
    trained = []
    take_or_train(request, inputs, outputs, lambda: trained.append(request))
    assert contents(outputs) == before and not trained
    other = replace(request, options=request.options | {"steps": 3})
    take_or_train(other, inputs, outputs, lambda: train_cell(other, inputs, outputs))
    assert contents(outputs) != before and len(lines_of(request)) == 2


@pytest.mark.parametrize("changed", ["steps", "seeds", "output"])
def test_only_the_very_training_is_taken(paying, changed):
    request, inputs, outputs = paying
    train_cell(request, inputs, outputs)
    other = {
        "steps": {"options": request.options | {"steps": 3}},
        "seeds": {"seeds": [0, 1]},
        "output": {},
    }[changed]
    request = replace(request, **other)
    more = {"audit": outputs["run"].replace("run", "audit")} if changed == "output" else {}
    assert not take(request, inputs, outputs | more)
    with pytest.raises(StudyError, match="it was trained with secure noise on 20"):
        train_cell(request, inputs, outputs)
    assert len(lines_of(request)) == 1


def test_other_bytes_of_the_same_records_are_taken_where_somebody_noted_what_they_were(paying, tmp_path):
    request, inputs, outputs = paying
    train_cell(request, inputs, outputs)
    store, manifest = PaidModels(request.spending).store, tmp_path / "features/train/manifest.json"
    was = manifest.read_text()
    manifest.write_text(json.dumps(json.loads(was) | {"version": 2}))
    with pytest.raises(StudyError, match=r"what it learned from or was tested on \(train\) is not what is there"):
        take(request, inputs, outputs)  # the same, but nobody can tell
    now = manifest.read_text()
    manifest.write_text(was)
    assert store.note_content(manifest)
    manifest.write_text(now)
    assert take(request, inputs, outputs)
    table = shards.load(str(manifest.parent))
    table.features[0, 0] += 1
    write_split(tmp_path / "features", "train", table.features, table.labels)
    with pytest.raises(StudyError, match=r"\(train\) is not what is there"):
        take(request, inputs, outputs)
    write_split(tmp_path / "features", "train", table.features[1:], table.labels[1:])
    counts = len(table.labels), len(table.labels) - 1
    with pytest.raises(StudyError, match=r"\(train; its ledger counts {}, and there are {} now\) is".format(*counts)):
        take(request, inputs, outputs)
    assert len(lines_of(request)) == 1


def test_a_run_is_told_what_its_jobs_may_refuse_and_refused_where_it_would_lose_something(paying):
    request, inputs, outputs = paying
    train_cell(request, inputs, outputs)
    book, due = request.spending, due_of(request, outputs)
    new = Due("toy/pixels/entry/eps=2", [0], "nowhere/ledger.json")
    other = Due(due.cell, due.seeds, due.ledger, due.outputs, "another config")
    assert guard([due], book, True) and not guard([new], book, True)
    for refused, others in (([other], False), ([other, other], False)):
        with pytest.raises(StudyError, match="nothing was run: cell toy/pixels/entry/eps=1: it was trained with"):
            guard(refused, book, True, others)
    assert guard([other, new], book, True) and guard([other], book, True, others=True)
    store = PaidModels(book).store.root
    shutil.rmtree(store)
    assert guard([due], book, True) and list(store.rglob("model.safetensors")), "put there again"
    shutil.rmtree(store)
    open(outputs["model"], "ab").write(b"more")
    with pytest.raises(StudyError, match="nothing was run: .*it was trained with secure noise"):
        guard([due, new], book, True)  # what is there is not what was paid for, and Snakemake would remove it
    assert not list(store.rglob("*.safetensors"))


def test_of_many_seeds_the_folder_has_a_short_name(tmp_path):
    store = PaidStore(tmp_path)
    places = {store.place("a", range(count)) for count in (1, 2, 60, 61)}
    assert len(places) == 4 and max(len(place.name) for place in places) < 120
