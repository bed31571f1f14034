import numpy as np
import pyarrow as pa
import pytest

from dpstudy.core.errors import StudyError
from dpstudy.core.files import write_table
from dpstudy.pretraining.rows import Order, PublicRows, check_images


def taken(order, steps, counts):
    """(shard, row of the shard) of every row that these steps take."""
    found = []
    for step in range(steps):
        group, index = order.at(step)
        places = [(shard, row) for shard in group for row in range(counts[shard])]
        found += [places[row] for row in index]
    return found


@pytest.mark.parametrize("together", [1, 2, 3, 9])
def test_each_epoch_takes_every_row_once_in_a_new_order(together):
    counts = [7, 0, 12, 5]
    order = Order(3, counts, batch_size=4, together=together)
    ends = [0, *(order.steps(epochs) for epochs in (1, 2, 3))]
    whole = sorted((shard, row) for shard, count in enumerate(counts) for row in range(count))
    epochs = []
    for first, last in zip(ends[:-1], ends[1:], strict=True):
        found = taken(order, last, counts)[len(taken(order, first, counts)) :]
        assert sorted(found) == whole
        epochs.append(found)
    assert epochs[0] != epochs[1] != epochs[2]
    assert all(len(order.at(step)[0]) <= together for step in range(ends[-1]))
    assert all(len(order.at(step)[1]) <= 4 for step in range(ends[-1]))


def test_a_step_is_the_same_whoever_asks_for_it_and_another_seed_is_not():
    counts = [9, 8, 10]
    one, other = Order(0, counts, 4, 2), Order(1, counts, 4, 2)
    forwards = [one.at(step) for step in range(20)]
    alone = [Order(0, counts, 4, 2).at(step) for step in reversed(range(20))][::-1]
    for (group, index), (same_group, same) in zip(forwards, alone, strict=True):
        assert group == same_group and (index == same).all()
    assert any((one.at(step)[1] != other.at(step)[1]).any() for step in range(3))


def test_shards_are_held_as_memory_allows(public, monkeypatch):
    rows = PublicRows(public / "train")
    assert len(Order.of(0, rows, 50).at(0)[0]) == 3
    monkeypatch.setattr("dpstudy.pretraining.rows.HELD_BYTES", 2 * max(rows.counts) * 64)
    assert len(Order.of(0, rows, 50).at(0)[0]) == 2


def test_dropped_rows_are_neither_counted_nor_read(public, tmp_path):
    whole = PublicRows(public / "train")
    ids = np.concatenate([batch.ids for batch in whole.batches(64)])
    assert len(whole) == len(ids) == 400 and max(len(batch) for batch in whole.batches(64)) == 64
    kept = [name for row, name in enumerate(ids) if row % 3]
    lists = {"dataset": ["glyphs"] * len(kept), "split": ["train"] * len(kept), "id": kept}
    write_table(tmp_path / "kept.parquet", pa.table(lists))
    less = PublicRows(public / "train", tmp_path / "kept.parquet")
    assert [name for batch in less.batches(100) for name in batch.ids] == kept
    assert len(less) == len(kept) and less.sha256 != whole.sha256


def test_sets_that_cannot_be_learned_from_are_refused(make_records, make_folder, tmp_path):
    many = PublicRows(make_folder(make_records(8, multi_label=True), "many", private=False))
    with pytest.raises(StudyError, match="'many': pre-training by labels needs one label a record"):
        check_images(many, labelled=True)
    check_images(many, labelled=False)
    small = PublicRows(make_folder(make_records(8, shape=(7, 9, 1)), "small", private=False))
    with pytest.raises(StudyError, match=r"images are \(7, 9\); pre-training needs at least 8 pixels"):
        check_images(small, labelled=True)
    nothing = {
        "dataset": pa.array([], pa.string()),
        "split": pa.array([], pa.string()),
        "id": pa.array([], pa.string()),
    }
    write_table(tmp_path / "none.parquet", pa.table(nothing))
    with pytest.raises(StudyError, match="no row is left"):
        check_images(PublicRows(make_folder(make_records(8), private=False), tmp_path / "none.parquet"), labelled=True)
