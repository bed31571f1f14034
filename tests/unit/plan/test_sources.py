"""Splits, shards and what reading a data set depends on."""

from types import SimpleNamespace

import pytest

from dpstudy.plan import sources
from tests.unit.plan.conftest import study_with

OWN = {"reader": "image_table", "location": "here", "table": "t.csv", "path_column": "path", "label_column": "label"}


def own(**more) -> dict:
    entry = OWN | {"splits": {"test": 0.2, "validation": 0.2}, "shards": 2, "delta": "1e-5", "classes": ["a", "b"]}
    return study_with(datasets__own=entry | more)


def test_splits_of_private_and_public_sets(study):
    assert sources.splits(study, "own") == ("train", "validation", "test")
    assert sources.splits(study, "web") == ("train",), "a public set has no test split unless its entry gives one"
    assert sources.training_splits(study, "own") == ["train", "validation"]
    assert sources.shards(study, "web") == [("train", 0), ("train", 1)]


def test_images_as_they_are_have_no_features_of_their_own(study):
    assert sources.feature_files(study, "own", "images", "test")[0] == "results/data/own/test/manifest.json"
    assert sources.feature_files(study, "own", "pixels", "test")[0] == "results/features/own/pixels/test/manifest.json"
    for features in ("images", "pixels"):
        folder = sources.feature_folder(study, "own", features, "test")
        assert {path.rpartition("/")[0] for path in sources.feature_files(study, "own", features, "test")} == {folder}


@pytest.mark.parametrize("key", ["delta", "sum_jobs", "positives", "beyond"])
def test_what_only_others_need_reads_nothing_anew(key):
    value = {"delta": "1e-6", "sum_jobs": 2, "positives": 3, "beyond": "refuse"}[key]
    changed = study_with(**{f"datasets__own__{key}": value})
    assert sources.reading_options(changed, "own") == sources.reading_options(study_with(), "own")


def test_what_truncates_labels_reads_them_anew():
    cut = study_with(datasets__own__beyond="truncate", datasets__own__positives=2)
    assert sources.reading_options(cut, "own").items() >= {("beyond", "truncate"), ("positives", 2)}


def test_what_shards_are_checked_by_is_untracked(study):
    checked = sources.checking_options(study_with(data_root="elsewhere"), "own")
    assert isinstance(checked, SimpleNamespace), "Snakemake compares plain values"
    assert vars(checked) == {"data_root": "elsewhere", "delta": "1e-5", "positives": 1}
    assert vars(sources.checking_options(study, "web"))["positives"] is None, "public labels are not bounded"
    assert isinstance(sources.place_of_data(study), SimpleNamespace)


def test_only_splits_of_persons_are_compared_with_each_other():
    assert sources.other_splits(own(), "own", "train") == sources.other_splits(own(), "own", "validation") == []
    told = sources.other_splits(own(), "own", "test")
    assert told == [path for split in ("train", "validation") for path in sources.shard_files(own(), "own", split)]
    persons = own(subject_column="who", unit="subject")
    others = sources.other_splits(persons, "own", "train")
    assert others == [path for split in ("validation", "test") for path in sources.shard_files(persons, "own", split)]
    assert sources.other_splits(persons, "web", "train") == []


def test_copies_are_planted_in_the_last_public_training_shard_alone():
    study = study_with(public__web__plant={"dataset": "own", "split": "test", "count": 3})
    planted = sources.planted_files(study, "web", "train", "00001")
    assert planted == sources.split_files(study, "own", "test")
    assert sources.planted_files(study, "web", "train", "00000") == []
    assert sources.planted_files(study, "own", "train", "00001") == []
    assert sources.is_planted(study, "web") and not sources.is_planted(study_with(), "web")


def test_an_edited_table_or_image_makes_shards_anew(tmp_path):
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "t.csv").write_text("path,label\na.png,a\n")
    (folder / "a.png").write_bytes(b"1")
    study = own() | {"data_root": str(tmp_path)}
    assert sources.source_table(study, "own") == [str(folder / "t.csv")]
    before = sources.state_of_images(study, "own")
    sources._states.clear()  # another run
    assert sources.state_of_images(study, "own") == before
    (folder / "a.png").write_bytes(b"22")
    sources._states.clear()
    assert sources.state_of_images(study, "own") != before
    assert sources.source_table(study_with(), "own") == []


def test_a_pass_for_sums_is_shared_among_no_more_jobs_than_shards():
    study = study_with(datasets__own__sum_jobs=5)
    assert sources.sum_jobs(study, "own") == 2 and sources.summed_in_shares(study) == ["own"]
    shares = [sources.share_files(study, "own", "pixels", "train", f"{share:03d}") for share in range(2)]
    manifest, *shards = sources.feature_files(study, "own", "pixels", "train")
    assert [share[0] for share in shares] == [manifest] * 2
    assert sorted(path for share in shares for path in share[1:]) == shards, "each shard once"
    assert len(sources.all_shares(study, "own", "pixels", "train", "1.0", "shared")) == 2
    assert sources.summed_at_once(study_with()) == ["own"]


def test_facts_of_a_data_set_are_those_that_privacy_depends_on():
    facts = sources.facts(study_with(datasets__own__shards=7), "own")
    assert facts == {"reader": "cifar", "delta": "1e-5", "unit": "record", "positives": 1}
    chosen = sources.facts(study_with(datasets__own__splits={"validation": 0.1, "records": 100}), "own")
    assert any("fixed number of training records was chosen" in one for one in chosen["not_accounted"])
