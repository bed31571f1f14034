"""A training with secure noise that dies at any point, or finds the disk full there, is complete after the same command
again: booked once, and nothing that was kept is drawn again."""

import json
import os
import shutil
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dpstudy.cell.inputs import CellInputs
from dpstudy.cell.paid_models import Due, PaidModels, guard
from dpstudy.cell.paid_training import begin
from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json, read_tensor_metadata, read_tensors, sha256, write_tensors
from dpstudy.jobs import training as training_module
from dpstudy.jobs.gather import gather_cell
from dpstudy.jobs.training import train_cell
from dpstudy.privacy.paid_store import PaidStore, name_of
from dpstudy.privacy.spending import Spending
from dpstudy.privacy.spent_lines import is_begun
from dpstudy.provenance.hashes import library_hash
from tests.scenarios.secure_noise.deaths import DEATH, Training, run
from tests.unit.tuning.conftest import request_of, write_split

pytestmark = pytest.mark.slow

STEPPED = {"clipping_norm": 1.0, "learning_rate": 0.1}
FAMILIES = {
    "least_squares": {},
    "first_order": STEPPED | {"steps": 2},
    "newton": {"clipping_norm": 1.0, "steps": 1},
    "feature_covariance": {"clipping_norm": 1.0, "steps": 2},
    "kernel_mean": {},
    "iterated_sgd": STEPPED | {"batch_size": 8, "epochs": 1},
    "instance_smoothing": {"projected_dim": 2, "epochs": 1},
    "network_dpsgd": STEPPED | {"network": "lenet", "steps": 2, "batch_size": "full", "checkpoint_minutes": 0},
}
BOOKING = "open .spent.jsonl.lock"  # the point before a line is written
EVERY = bool(os.environ.get("DPSTUDY_DEATHS"))  # each point of each family: minutes


@pytest.fixture
def start(tmp_path):
    """What a family trains, in a folder of a name of its own."""
    rng = np.random.default_rng(3)

    def started(family, name):
        root, deep = tmp_path / name, family == "network_dpsgd"
        shape = (1, 28, 28) if deep else (4,)
        for split, rows in (("train", 12), ("test", 6)):
            features, labels = rng.standard_normal((rows, int(np.prod(shape)))), rng.integers(3, size=rows)
            write_split(root / "features", split, features, labels, shape)
        options = {"method": family} | FAMILIES[family]
        request = request_of(options, noise="secure", spent=str(root / "privacy/spent.jsonl"))
        if deep:
            request = request_of(options, noise="secure", spent=request.spent, checkpoint=str(root / "checkpoint"))
        names = ["model.safetensors", "run.json", "scores.parquet", "ledger.json"]
        names += ["curve.parquet"] if deep or family in ("first_order", "newton", "feature_covariance") else []
        outputs = {name.partition(".")[0]: str(root / "cell" / name) for name in names}
        inputs = CellInputs((str(root / "features/train"),), str(root / "features/test"))
        return Training(request, inputs, outputs, str(root))

    return started


def kept_of(training):
    """(whole trainings in the store, whether a checkpoint is there)."""
    store = PaidModels(Spending(training.request.spent)).store
    place = training.request.cell.path, training.request.seeds
    return len(store.trainings(*place)), store.checkpoint(*place).exists()


def complete(training):
    """The outputs are there, whole, and what the book says was paid for, once."""
    book = Spending(training.request.spent)
    (line,) = book.trainings()
    assert not is_begun(line) and (line["cell"], line["seed"]) == (training.request.cell.path, 0)
    assert line["files"] == {os.path.basename(path): sha256(path) for path in training.outputs.values()}
    store = PaidStore(book.path.with_name("paid"))
    (folder,) = store.trainings(training.request.cell.path, [0])
    assert folder.name == name_of(line["files"])
    assert sum(not is_begun(entry) for entry in book.entries()) == 1 and kept_of(training) == (1, False)
    left = [path for root, _, files in os.walk(training.folder) for path in files if path.endswith(".tmp")]
    assert not left, left


def points_of(whole, first, step):
    """All points from the first draw on, or each `step`-th of them, and all up to the next draw, where the first
    checkpoint is written down."""
    start, end = whole.points.index("draw"), len(whole.points) + 1
    if EVERY:
        return range(start, end)
    later = [point for point in range(start + 1, end - 1) if whole.points[point] == "draw"]
    return sorted({*range(start, *later[:1] or (start,)), *range(start + first, end, step)})


@pytest.mark.parametrize("family", FAMILIES)
def test_a_death_at_any_point_loses_nothing_and_draws_nothing_twice(start, family):
    whole = run(start(family, "whole"))
    assert whole.status == 0, whole.said
    complete(start(family, "whole"))
    for point in points_of(whole, list(FAMILIES).index(family), len(FAMILIES)):
        training, where = start(family, f"{point}"), (point, whole.points[point : point + 1])
        killed = run(training, at=point)
        assert killed.status == (DEATH if point < len(whole.points) else 0), (where, killed.said)
        trained, begun = kept_of(training)
        ended = [line for line in Spending(training.request.spent).trainings() if not is_begun(line)]
        assert len(ended) == 1 or not any(map(os.path.exists, training.outputs.values())), where
        again = run(training)
        assert again.status == 0, (where, again.said)
        complete(training)
        if trained:
            assert again.draws == 0, where
        elif begun:
            assert 0 < again.draws < whole.draws, where
        else:
            assert again.draws == whole.draws, where


def test_of_two_processes_that_train_a_cell_the_second_takes_what_the_first_made(start):
    training = start("least_squares", "twice")
    cell, seeds = training.request.cell.path, training.request.seeds
    store = PaidModels(Spending(training.request.spent)).store
    ended = []
    run(start("least_squares", "whole"))  # so that the second process need not wait for imports
    second = threading.Thread(target=lambda: ended.append(run(training)))
    with store.claim(cell, seeds):
        second.start()
        second.join(3)
        assert second.is_alive(), ended
        train_cell(training.request, training.inputs, training.outputs)
    second.join(60)
    assert ended[0].status == 0 and ended[0].draws == 0, ended
    complete(training)


def test_where_nothing_can_be_locked_the_first_to_end_counts(start, monkeypatch):
    training, add, first = start("least_squares", "twice"), PaidStore.add, []

    def overtaken(store, *arguments):
        monkeypatch.setattr(PaidStore, "add", add)
        train_cell(training.request, training.inputs, training.outputs)
        first.append(sha256(training.outputs["model"]))
        return add(store, *arguments)

    monkeypatch.setattr(PaidStore, "add", overtaken)
    train_cell(training.request, training.inputs, training.outputs)
    assert sha256(training.outputs["model"]) == first[0]
    complete(training)


def test_what_ended_before_it_was_written_down_is_written_down_whatever_is_asked_for_now(start):
    training = start("least_squares", "before")
    assert run(training, at=BOOKING).status == DEATH
    book = Spending(training.request.spent)
    assert kept_of(training) == (1, False) and not book.trainings()
    other = replace(training, request=replace(training.request, options=training.request.options | {"gram_share": 0.3}))
    refused = run(other)
    assert refused.status == 1 and "it was trained with secure noise on 20" in refused.said and not refused.draws
    assert [entry["config"] for entry in book.trainings()] == [training.request.fingerprint]
    assert run(training).draws == 0
    complete(training)


def test_what_ended_beyond_the_budget_leaves_nothing(start):
    training = start("least_squares", "beyond")
    assert run(training, at=BOOKING).status == DEATH
    poor = replace(training, request=replace(training.request, ceiling="0.5"))
    assert "beyond release: {budget: 0.5}" in run(poor).said
    assert kept_of(training) == (0, False) and not Spending(training.request.spent).trainings()


def test_a_clock_that_is_behind_the_data_is_set_before_anything_is_drawn(start):
    training = start("least_squares", "clock")
    manifest = Path(training.inputs.train[0]) / "manifest.json"
    made = manifest.stat().st_mtime
    os.utime(manifest, (made + 6 * 86_400,) * 2)
    refused = run(training)
    assert refused.status == 1 and not refused.draws and not Spending(training.request.spent).trainings()
    assert (
        f"{manifest}: was made at 20" in refused.said
        and "Set the clock, and run the same command again" in refused.said
    )
    os.utime(manifest, (made, made))
    assert run(training).status == 0
    os.utime(manifest, (made + 6 * 86_400,) * 2)
    assert run(training).draws == 0, "what was paid for is taken at any time"
    complete(training)


@pytest.fixture
def begun(start):
    """A deep training that died after its first checkpoint was written down."""
    whole, training = run(start("network_dpsgd", "whole")), start("network_dpsgd", "begun")
    assert run(training, at=whole.points.index("os.rename spent.jsonl") + 2).status == DEATH
    (line,) = Spending(training.request.spent).trainings()
    assert is_begun(line) and kept_of(training) == (0, True) and whole.draws == 2
    return training


def test_what_was_begun_goes_on_where_it_was(begun, start):
    """Whichever version of the program does so, but of the same records, and only with the noise that was planned."""
    request, book = begun.request, Spending(begun.request.spent)
    features, labels = np.zeros((12, 192)), np.zeros(12, int)
    was = Path(begun.inputs.train[0]).rename(Path(begun.inputs.train[0]).with_name("was"))
    write_split(was.parent, "train", features, labels, (3, 8, 8))
    refused = run(begun)
    assert refused.status == 1 and "what it learned from or was tested on (train) is not what is there" in refused.said
    shutil.rmtree(was.with_name("train"))
    was.rename(was.with_name("train"))
    line = json.loads(book.path.read_text())
    line["ledger"]["events"][0]["noise_multiplier"] *= 2
    kept = book.path.read_text()
    book.path.write_text(json.dumps(line) + "\n")
    refused = run(begun)
    assert refused.status == 1 and "begun by another version of the program, which planned other noise" in refused.said
    book.path.write_text(kept)
    other = replace(request, options=request.options | {"learning_rate": 0.2})
    refused = run(replace(begun, request=other))
    assert refused.status == 1 and "its training of seed 0 was begun with secure noise on 20" in refused.said
    assert book.path.read_text() == kept and not refused.draws
    newer = replace(request, code=(__file__,), library=library_hash([__file__]))
    ended = run(replace(begun, request=newer))
    assert ended.status == 0 and ended.draws == 1, ended.said
    assert read_json(begun.outputs["run"])["made_by"]["begun_by"] == request.library
    complete(begun)


def test_what_was_begun_and_is_lost_has_been_spent(begun):
    request, book = begun.request, Spending(begun.request.spent)
    PaidModels(book).store.checkpoint(request.cell.path, [0]).unlink()
    refused = run(begun)
    assert refused.status == 1 and "or its checkpoint is gone; to begin again spends as much again" in refused.said
    again = run(replace(begun, request=replace(request, spend_again=True)))
    assert again.status == 0 and again.draws == 2
    assert [is_begun(entry) for entry in book.trainings()] == [True, False]
    poor = replace(request, cell=replace(request.cell, entry="other"), ceiling="1.5")
    assert "(before it 1." in run(replace(begun, request=poor)).said


SMALLER = {"micro_batch": 4, "checkpoint_steps": 1, "checkpoint_minutes": 60}


def due_of(training):
    request, outputs = training.request, training.outputs
    return Due(request.cell.path, [0], outputs["ledger"], outputs, request.fingerprint, request.deciding)


def test_what_was_begun_goes_on_with_what_changes_memory_and_speed_alone(begun):
    """As after a kill by the operating system, since a micro-batch did not fit into memory."""
    request, (line,) = begun.request, Spending(begun.request.spent).trainings()
    smaller = replace(begun, request=replace(request, options=request.options | SMALLER))
    assert guard([due_of(smaller)], request.spending, secure=True, keep=False)
    ended = run(smaller)
    assert ended.status == 0 and ended.draws == 1, ended.said
    made, ledger = read_json(begun.outputs["run"])["made_by"], read_json(begun.outputs["ledger"])
    assert (made["config"], made["begun_as"]) == (smaller.request.fingerprint, request.fingerprint)
    (whole,) = Spending(request.spent).trainings()
    assert whole["training"] == line["training"] and whole["config"] == smaller.request.fingerprint
    assert whole["ledger"]["events"] == line["ledger"]["events"] == ledger["events"]
    complete(smaller)
    assert run(smaller).draws == 0


def test_a_seed_that_has_ended_is_taken_whatever_memory_another_one_takes(start):
    """Else a study could neither end the seed that ran out of memory nor keep those that did not."""
    training = start("network_dpsgd", "ended")
    assert run(training).status == 0
    before = {path: Path(path).read_bytes() for path in training.outputs.values()}
    smaller = replace(training, request=replace(training.request, options=training.request.options | SMALLER))
    book = training.request.spending
    assert guard([due_of(smaller)], book, secure=True, keep=False) and PaidModels(book).has(due_of(smaller))
    shutil.rmtree(Path(training.outputs["run"]).parent)
    assert run(smaller).draws == 0
    assert {path: Path(path).read_bytes() for path in training.outputs.values()} == before
    complete(smaller)
    other = replace(training.request, options=training.request.options | {"learning_rate": 0.2})
    refused = run(replace(training, request=other))
    assert refused.status == 1 and not refused.draws and "it was trained with secure noise on 20" in refused.said
    gathered = {name: str(Path(training.folder) / "whole" / name) for name in ("run", "ledger", "curve", "model")}
    gather_cell([str(Path(training.outputs["run"]).parent)], [0], "of the whole cell", gathered)
    assert not {"deciding", "begun_as"} & read_json(gathered["run"])["made_by"].keys()


def test_what_was_begun_and_ended_with_another_memory_unseen_is_one_training(begun):
    smaller = replace(begun, request=replace(begun.request, options=begun.request.options | SMALLER))
    assert run(smaller, at=BOOKING).status == DEATH
    other = replace(begun.request, options=begun.request.options | {"learning_rate": 0.2})
    refused = run(replace(begun, request=other))  # which writes down what ended, whatever is asked for now
    assert refused.status == 1 and not refused.draws and "it was trained with secure noise on 20" in refused.said
    assert run(smaller).draws == 0
    complete(smaller)


def test_what_an_earlier_version_began_goes_on_where_nothing_was_changed(begun):
    """Its checkpoint has the hash of the whole config alone."""
    request = begun.request
    path = PaidModels(request.spending).store.checkpoint(request.cell.path, [0])
    tensors, metadata = read_tensors(path), read_tensor_metadata(path)
    made = {key: value for key, value in json.loads(metadata["made_by"]).items() if key != "deciding"}
    write_tensors(path, tensors, metadata | {"made_by": json.dumps(made, sort_keys=True)}, private=True)
    smaller = replace(begun, request=replace(request, options=request.options | SMALLER))
    refused = run(smaller)
    assert refused.status == 1 and not refused.draws and "with other settings" in refused.said
    ended = run(begun)
    assert ended.status == 0 and ended.draws == 1, ended.said
    assert "begun_as" not in read_json(begun.outputs["run"])["made_by"]
    complete(begun)


@pytest.mark.parametrize("place", ["header", "values", "end"])
@pytest.mark.parametrize("ceiling", [None, "1.2"])
def test_a_damaged_checkpoint_of_what_was_paid_for_is_not_silently_trained_anew(begun, place, ceiling):
    request, book = replace(begun.request, ceiling=ceiling), Spending(begun.request.spent)
    path, kept = PaidModels(book).store.checkpoint(request.cell.path, [0]), book.path.read_text()
    whole = path.read_bytes()
    at = {"header": 9, "values": len(whole) - 5}
    damaged = whole[:-5] if place == "end" else whole[: at[place]] + b"\xff" + whole[at[place] + 1 :]
    path.write_bytes(damaged)
    refused = run(replace(begun, request=request))
    assert refused.status == 1 and not refused.draws, refused.said
    assert f"its checkpoint, {path}, is damaged; to begin again spends as much again. Restore" in refused.said
    assert path.read_bytes() == damaged and book.path.read_text() == kept
    if ceiling is None:
        again = run(replace(begun, request=replace(request, spend_again=True)))
        assert (
            again.status == 0 and again.draws == 2 and [is_begun(entry) for entry in book.trainings()] == [True, False]
        )
        return
    path.write_bytes(whole)
    assert run(replace(begun, request=request)).draws == 1
    complete(begun)


def test_a_damaged_checkpoint_whose_line_stands_beside_the_data_alone_is_refused_too(begun, tmp_path):
    (tmp_path / "data").mkdir()
    request = replace(begun.request, shared=[str(tmp_path / "data/log.jsonl")])
    request.spending.tell_others()
    Spending(request.spent).path.unlink()
    path = PaidModels(Spending(request.spent)).store.checkpoint(request.cell.path, [0])
    path.write_bytes(path.read_bytes()[:-1] + b"\xff")
    refused = run(replace(begun, request=request))
    assert refused.status == 1 and not refused.draws and "is damaged; to begin again spends" in refused.said
    assert len(request.spending.everywhere()) == 1


def test_what_ended_unseen_is_not_taken_for_the_end_of_what_was_begun_before(begun):
    """Another training of the cell, which had no checkpoint of its own yet."""
    options = begun.request.options | {"learning_rate": 0.2, "checkpoint_minutes": 60}
    other = replace(begun, request=replace(begun.request, options=options, spend_again=True))
    assert run(other, at=BOOKING).status == DEATH
    assert kept_of(other) == (1, True)
    assert run(other).draws == 0
    assert [is_begun(entry) for entry in Spending(begun.request.spent).trainings()] == [True, False]


def test_a_first_checkpoint_beyond_the_budget_leaves_nothing(start, monkeypatch):
    """Two that fit alone begin at once."""
    training = start("network_dpsgd", "poor")
    request = replace(training.request, ceiling="1.2")
    other = replace(request, cell=replace(request.cell, entry="other"))

    def overtaken(*arguments):
        monkeypatch.undo()
        ledger = json.loads(json.dumps(arguments[1]))
        request.spending.record("toy", other.cell.path, [0], ledger, files={"f": "h"})
        begin(*arguments)

    monkeypatch.setattr(training_module, "begin", overtaken)
    with pytest.raises(StudyError, match="beyond release: {budget: 1.2}"):
        train_cell(request, training.inputs, training.outputs)
    assert kept_of(training) == (0, False) and len(request.spending.trainings()) == 1


@pytest.mark.parametrize(("family", "step"), [("least_squares", 3), ("network_dpsgd", 24)])
def test_a_disk_that_is_full_from_any_point_on_loses_nothing(start, family, step):
    whole = run(start(family, "whole"))
    for point in points_of(whole, 0, step):
        training, where = start(family, f"{point}"), (point, whole.points[point : point + 1])
        full = run(training, at=point, full=True)
        assert full.status in (0, 1) and (full.status == 0 or "the disk is full; free some space" in full.said), where
        trained, _ = kept_of(training)
        again = run(training)
        assert again.status == 0 and not (trained and again.draws), (where, again.said)
        complete(training)
