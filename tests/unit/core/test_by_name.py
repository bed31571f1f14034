"""Readers and extractors are found by their names, so that a new one changes no file that others depend on."""

import pytest

from dpstudy.core.by_name import opener
from dpstudy.core.errors import StudyError
from dpstudy.data.own import own_data
from dpstudy.data.readers import open_reader
from dpstudy.features import NOT_COMPUTED, open_extractor
from dpstudy.provenance.code import PACKAGE, closure
from dpstudy.schema.reading import schema

SOURCE, FEATURES = (schema("config")["$defs"][node] for node in ("source", "features"))


def test_every_reader_and_extractor_of_the_schema_is_a_module_and_every_such_module_is_there():
    for package, names in (("features", FEATURES["x-extractors"]), ("data/readers", SOURCE["x-readers"])):
        module = "dpstudy." + package.replace("/", ".")
        with pytest.raises(StudyError, match="kind 'zzz' does not exist; there are ") as caught:
            opener(module, "kind", "zzz")
        opening = set(str(caught.value).partition(" there are ")[2].split(", "))
        assert opening | set(NOT_COMPUTED) >= set(names) >= opening
    assert {name for name in SOURCE["x-readers"] if own_data(name)} == set(SOURCE["x-own-data"])


@pytest.mark.parametrize("name", ["no_such", "shards", "a.b", "", None, "../pixels"])
def test_a_name_that_is_none_is_refused(name, tmp_path):
    with pytest.raises(StudyError, match="does not exist.*; there are "):
        open_extractor({"extractor": name})
    with pytest.raises(StudyError, match="does not exist.*; there are "):
        open_reader(name, {}, tmp_path)


def test_what_a_cell_is_made_by_names_no_reader_or_extractor():
    """Else a new one would have every model of every study trained again."""
    files = closure("dpstudy.jobs.training", "dpstudy.methods.least_squares", "dpstudy.data.prepare")
    names = {*FEATURES["x-extractors"], *SOURCE["x-readers"]} - {"images", "labels", "arrays"}
    lists = [
        path
        for path in files
        if len({name for name in names if f'"{name}"' in (PACKAGE.parents[1] / path).read_text(encoding="utf-8")}) > 5
    ]
    assert lists == []
