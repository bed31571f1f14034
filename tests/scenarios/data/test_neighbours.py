"""In every format: a record or a person more or less, or another order, changes no choice about anybody else.

Choices are the split of a record, whether it is among the kept ones of its subject, and which of its labels are kept.
A guarantee for a record or a person is about two data sets that differ in that alone.
"""

from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow.parquet as parquet
import pytest

from dpstudy.data.names import LABELS, may_be_numbered, split_names
from dpstudy.data.prepare import prepare_shard
from dpstudy.data.readers import open_reader
from dpstudy.schema.reading import schema
from tests.scenarios.data import formats

SOURCE = schema("config")["$defs"]["source"]

WRITERS = {
    "arrays": (formats.arrays, formats.arrays_of_two_pools),
    "chexpert": (formats.chexpert,),
    "cifar": (formats.cifar_python, formats.cifar_binary),
    "digits": (formats.digits,),
    "idx": (formats.idx,),
    "image_folder": (formats.image_folder,),
    "image_table": (formats.table_of_paths, formats.table_of_tiles, formats.table_of_tiles_without_persons),
    "imagenet": (formats.imagenet,),
    "imagenet32": (formats.imagenet32,),
    "labels": (formats.labels_with_ids,),
    "mosaics": (formats.mosaics,),
    "nih": (formats.nih,),
    "places365": (formats.places365,),
}


@pytest.fixture(
    params=[(reader, write) for reader, writers in WRITERS.items() for write in writers],
    ids=lambda each: f"{each[0]}-{each[1].__name__}",
)
def choices(request, tmp_path, monkeypatch):
    """A function: rows -> what was chosen about them: Counter of (split, subject, image, labels)."""
    reader, write = request.param
    monkeypatch.setattr("dpstudy.data.own_names.BLOCK_BYTES", 20_000)  # several blocks a pool

    def choose(rows, shards=1):
        root = tmp_path / str(len(list(tmp_path.iterdir())))
        root.mkdir()
        options = write(root, rows, monkeypatch) | {"reader": reader, "shards": shards}
        choose.by_person = options.get("unit") == "subject"
        found, ids = Counter(), []
        for split in split_names(options):
            for shard in range(shards):
                path = tmp_path / f"{root.name}.parquet"
                prepare_shard("own", options, root, split, shard, path, True)
                for row in parquet.read_table(path).to_pylist():
                    ids.append(row["id"])
                    what = row.get("image") or row["id"]  # labels alone are told apart by ids
                    found[split, row.get("subject"), what, str(row.get("labels", row.get("label")))] += 1
        assert len(ids) == len(set(ids))
        return found

    return choose


def test_every_reader_is_here():
    """But those whose pictures a program draws: nobody's record, and none can be deleted."""
    assert set(WRITERS) == set(SOURCE["x-readers"]) - set(SOURCE["x-drawn"])


def test_the_schema_lists_the_readers_of_rows_without_names(tmp_path, monkeypatch):
    """Whatever keeps labels alone, with or without ids, stands there too (names.LABELS)."""
    found = {LABELS}
    for reader, writers in WRITERS.items():
        for write in writers:
            root = tmp_path / write.__name__
            root.mkdir()
            options = write(root, formats.made_up(), monkeypatch)
            opened = open_reader(reader, options, root)
            named = all(opened.rows(pool).named for pool in opened.pools)
            assert named or may_be_numbered(options | {"reader": reader})
            found |= set() if named else {reader}
    assert found == set(SOURCE["x-numbered"])


def units(rows, by_person):
    """What can be deleted: persons, or records, among them each of equal ones."""
    if by_person:
        return [[row for row in rows if row.subject == who] for who in sorted({row.subject for row in rows})[:5]]
    return [[rows[place]] for place in (0, 1, 5, 11, 17, len(rows) - 1)]


def test_a_unit_less_or_more_changes_nothing_for_others(choices):
    rows = formats.made_up()
    before = choices(rows)
    for unit in units(rows, choices.by_person):
        after = choices([row for row in rows if row not in unit])
        assert not after - before, "nobody else has another split, other kept records, other labels"
        gone = before - after
        assert gone and (len({key[1] for key in gone}) if choices.by_person else gone.total()) == 1
    new = replace(rows[3], name="new", seed=1000, subject="patient99999")
    after = choices([new, *rows])
    assert not before - after and (after - before).total() == 1


def test_a_renamed_record_moves_itself_alone(choices):
    rows = formats.made_up()
    before = choices(rows)
    after = choices([*rows[:7], replace(rows[7], name="renamed"), *rows[8:]])
    gone, come = before - after, after - before
    if choices.by_person:  # which records of the person are kept may change
        assert {key[1] for key in gone + come} <= {rows[7].subject}
    else:
        assert gone.total() == come.total() <= 1
        assert {key[2:] for key in gone} == {key[2:] for key in come}


def test_another_order_changes_nothing(choices):
    rows = formats.made_up()
    before = choices(rows)
    assert choices([rows[place] for place in np.random.default_rng(1).permutation(len(rows))]) == before


def test_shards_agree(choices):
    rows = formats.made_up()
    assert choices(rows, shards=3) == choices(rows)
