"""What was paid for lies whole in a folder that its hashes name, for its owner alone."""

import stat

import pytest

from dpstudy.core.errors import StudyError
from dpstudy.privacy.paid_store import PaidStore, hashes_of, name_of, publish

CELL = "own/pixels/dp/eps=1"


def written(folder):
    (folder / "run.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"weights")


def test_a_training_lies_in_a_folder_of_its_hashes_for_its_owner_alone(tmp_path):
    store = PaidStore(tmp_path / "paid")
    files = store.add(CELL, [0, 1], written)
    (folder,) = store.trainings(CELL, [0, 1])
    assert folder.name == name_of(files) and hashes_of(folder) == files and folder.parent.name == "seed=0+1"
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert stat.S_IMODE(store.root.stat().st_mode) == 0o700
    assert not store.trainings(CELL, [0]) and store.add(CELL, [0, 1], written) == files
    assert store.trainings(CELL, [0, 1]) == [folder]
    store.remove(CELL, [0, 1], files)
    assert not store.trainings(CELL, [0, 1])


def test_a_changed_file_is_refused(tmp_path):
    store = PaidStore(tmp_path / "paid")
    store.add(CELL, [0], written)
    (folder,) = store.trainings(CELL, [0])
    store.check(folder)
    (folder / "model.safetensors").write_bytes(b"other weights")
    with pytest.raises(StudyError, match="not as it was written .* restore it from a backup"):
        store.check(folder)


def test_of_what_fails_half_way_nothing_stays(tmp_path):
    def fails(folder):
        written(folder)
        raise RuntimeError("died")

    store = PaidStore(tmp_path / "paid")
    with pytest.raises(RuntimeError, match="died"):
        store.add(CELL, [0], fails)
    assert not list(store.place(CELL, [0]).iterdir())


def test_outputs_are_copies(tmp_path):
    store = PaidStore(tmp_path / "paid")
    store.add(CELL, [0], written)
    (folder,) = store.trainings(CELL, [0])
    outputs = {"run": str(tmp_path / "cell/run.json"), "model": str(tmp_path / "cell/model.safetensors")}
    publish(folder, outputs)
    assert hashes_of(tmp_path / "cell") == hashes_of(folder)
    (tmp_path / "cell/run.json").write_text("changed")
    store.check(folder)
