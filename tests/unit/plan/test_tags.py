"""Tags that nothing uses are data: they make nothing stale, not even what was paid for when they were in its hash."""

import json
from pathlib import Path

import pytest

from dpstudy.config.cells import Cell
from dpstudy.plan import tags
from dpstudy.plan.fingerprints import fingerprint_of
from dpstudy.plan.origin import origin_of
from dpstudy.privacy.spending import BOOK
from tests.unit.plan.conftest import study_with
from tests.unit.plan.test_outside import LINE

PIXELS = Cell("own", "pixels", "sgd", "1")
TABLE = {
    "reader": "image_table", "location": "own", "table": "t.csv", "path_column": "path", "label_column": "label",
    "classes": ["a", "b"], "size": [32, 32], "channels": 3, "delta": "1e-5", "window": "file",
}  # fmt: skip
USED = {"who": "PatientID", "sex": "PatientSex", "age": "PatientAge", "view": "ViewPosition", "ill": "Modality"}
OF_ALL = {"subject_column": "who", "unit": "subject", "label_columns": ["view", "ill"], "label_column": None}
OF_ALL |= {"group_columns": ["sex", {"column": " age ", "bands": [40]}]}


def of_table(tags, **more):
    entry = {key: value for key, value in (TABLE | {"tags": tags} | more).items() if value}
    return study_with(datasets__own=entry)


def test_a_tag_that_nothing_uses_is_no_part_of_it(tmp_path, monkeypatch):
    """As a column of a table that nothing uses is none."""
    monkeypatch.chdir(tmp_path)
    tags.paid_configs.cache_clear()
    plain, several = of_table({}), of_table({"part": "BodyPartExamined", "kind": "Modality"})
    assert origin_of(plain, PIXELS) == origin_of(several, PIXELS)
    whole = of_table(USED, classes=["x", "y"], **OF_ALL)
    assert origin_of(of_table(USED | {"part": "BodyPartExamined"}, classes=["x", "y"], **OF_ALL), PIXELS) == origin_of(
        whole, PIXELS
    )
    for name in USED:  # each is used
        other = of_table(USED | {name: "BodyPartExamined"}, classes=["x", "y"], **OF_ALL)
        assert origin_of(other, PIXELS) != origin_of(whole, PIXELS), name


@pytest.mark.parametrize("of_seed", [False, True])
def test_what_was_paid_for_with_such_tags_in_its_hash_stays_so(tmp_path, monkeypatch, of_seed):
    monkeypatch.chdir(tmp_path)
    known, more = of_table({"kind": "Modality"}), of_table({"kind": "Modality", "part": "BodyPartExamined"})
    seeds = [known["seeds"][0]] if of_seed else known["seeds"]
    with monkeypatch.context() as earlier:
        earlier.setattr("dpstudy.plan.origin.without_unused", lambda reading: iter([reading]))
        config = fingerprint_of(known, PIXELS, seeds)
    tags.paid_configs.cache_clear()
    assert fingerprint_of(known, PIXELS, seeds) != config
    Path(BOOK).parent.mkdir(parents=True)
    Path(BOOK).write_text(json.dumps(LINE | {"cell": PIXELS.path, "seed": seeds[0], "config": config}))
    tags.paid_configs.cache_clear()
    assert fingerprint_of(known, PIXELS, seeds) == config == fingerprint_of(more, PIXELS, seeds)
    other = Cell("own", "pixels", "sgd", "inf")
    assert origin_of(known, other) == origin_of(of_table({}), other), "which nobody paid for"
    tags.paid_configs.cache_clear()


def test_of_many_tags_not_every_choice_is_tried():
    """A million hashes of twenty would keep a plan for hours."""
    many = {"reader": "image_table", "tags": {f"t{number}": "Modality" for number in range(20)}}
    assert list(tags.without_unused(many)) == [{"reader": "image_table"}, many]
    few = {"tags": {"a": "Modality", "b": "BodyPartExamined"}, "label_column": "b"}
    assert [each["tags"].keys() for each in tags.without_unused(few)] == [{"b"}, {"a", "b"}]
