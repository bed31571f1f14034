"""Snakemake's records of what made a file lie within the results, and a file without one is named."""

import os
from base64 import urlsafe_b64encode

import pytest

from dpstudy.plan.internals import keep_records, outdate, unrecorded


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def record(path, folder=".snakemake/metadata"):
    (os.makedirs(folder, exist_ok=True), open(f"{folder}/{urlsafe_b64encode(path.encode()).decode()}", "w").close())


def test_records_lie_within_the_results_and_those_from_before_are_moved_there(here):
    record("results/a.json")
    keep_records()
    assert os.path.islink(".snakemake/metadata") and len(os.listdir("results/records")) == 1
    keep_records()
    assert os.listdir("results/records") == os.listdir(".snakemake/metadata")


def test_records_that_came_with_results_hold(here):
    record("results/a.json")
    record("results/b.json", "results/records")
    keep_records()
    (name,) = os.listdir(".snakemake/metadata")
    assert name == urlsafe_b64encode(b"results/b.json").decode()


def test_where_nothing_can_be_written_all_stays_as_it_is(here):
    (here / ".snakemake").touch()
    keep_records()
    assert (here / ".snakemake").is_file()


def test_files_that_exist_without_a_record_are_named(here):
    keep_records()
    long = f"results/{'x' * 200}/{'y' * 200}.json"
    for path in ("results/a.json", "results/b.json", "results/half.json", long):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        open(path, "w").close()
    record("results/a.json")
    record("results/half.json", ".snakemake/incomplete")
    asked = ["results/a.json", "results/b.json", "results/half.json", "results/none.json", long]
    assert unrecorded(asked) == ["results/b.json", long]
    name = urlsafe_b64encode(long.encode()).decode()
    longest = os.pathconf(".snakemake/metadata", "PC_NAME_MAX") - 1
    parts = [name[start : start + longest] for start in range(0, len(name), longest)]
    folder = os.path.join("results/records", *(f"@{part}" for part in parts[:-1]))
    os.makedirs(folder)
    open(os.path.join(folder, parts[-1]), "w").close()
    assert unrecorded(asked) == ["results/b.json"]


def test_outdated_files_are_older_than_what_they_are_made_from(here):
    os.makedirs("results/folder")
    for path in ("results/a.json", "results/folder/.snakemake_timestamp"):
        open(path, "w").close()
    paths = ["results/a.json", "results/folder", "results/none.json"]
    assert outdate(iter(paths)) == paths
    assert os.path.getmtime("results/a.json") == os.path.getmtime("results/folder/.snakemake_timestamp") == 86_400
