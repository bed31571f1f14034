"""Books beside the data: whoever reads the same images, by whatever root, finds what was spent of them."""

import json
import os
from pathlib import Path

import pytest

from dpstudy.config.locations import books_of, check_book, check_run_folder, folders_looked_at, folders_of, records_of
from dpstudy.core.errors import StudyError
from dpstudy.privacy import data_book
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.data_book import NAME, books_around
from dpstudy.privacy.events import Event
from dpstudy.privacy.gaussian import epsilon_of, mu_of
from dpstudy.privacy.ledger import build_ledger
from dpstudy.privacy.printed import upper_bound
from dpstudy.privacy.spending import BeyondBudgetError, Spending
from dpstudy.privacy.spent_lines import about
from dpstudy.privacy.spent_sums import Protected


@pytest.fixture
def images(tmp_path, monkeypatch):
    monkeypatch.setattr(data_book, "_FRESH_SECONDS", 1e-9)
    folder = tmp_path / "hospital" / "images" / "scans"
    folder.mkdir(parents=True)
    (folder / "a.png").touch()
    return folder


def books(root, location, monkeypatch, **release):
    monkeypatch.setenv("DPSTUDY_DATA", str(root))
    entry = {"reader": "image_folder", "location": location}
    return books_of({"datasets": {"own": entry}, "release": release, "data_root": "data"}, ["own"])


def test_a_book_lies_in_the_root_or_beside_a_folder_elsewhere(images, tmp_path, monkeypatch):
    hospital = tmp_path / "hospital"
    assert books(hospital, "images/scans", monkeypatch) == [str(hospital / NAME)]
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "scans").symlink_to(images)
    found = books(tmp_path / "here", "scans", monkeypatch)
    assert found == sorted([str(tmp_path / "here" / NAME), str(images.parent / NAME)])
    assert books(hospital, "images/scans", monkeypatch, book="all.jsonl") == [str(hospital / "all.jsonl")]


@pytest.mark.parametrize("first", ["hospital", "hospital/images", "hospital/images/scans"])
@pytest.mark.parametrize("second", ["hospital", "hospital/images", "hospital/images/scans", "link"])
def test_another_root_finds_the_book_of_the_first(images, tmp_path, monkeypatch, first, second):
    def of(root):
        location = images.relative_to(tmp_path / root) if root != "link" else "scans"
        return books(tmp_path / root, str(location) or ".", monkeypatch)

    (tmp_path / "link").mkdir()
    (tmp_path / "link" / "scans").symlink_to(images)
    written = of(first)
    for path in written:
        open(path, "w").close()
    assert set(written) <= set(of(second))


def test_a_book_within_the_folder_counts_too(images, tmp_path, monkeypatch):
    inner = images / NAME
    inner.touch()
    assert str(inner) in books(tmp_path / "hospital", "images", monkeypatch)


def test_a_book_that_another_root_makes_meanwhile_is_found_by_a_job(images, tmp_path, monkeypatch):
    monkeypatch.setenv("DPSTUDY_DATA", str(tmp_path / "hospital" / "images"))
    config = {"datasets": {"own": {"reader": "image_folder", "location": "scans"}}, "release": {}, "data_root": "data"}
    folders = folders_looked_at(config, ["own"])
    assert folders == [str(images)] and books_around(folders) == []
    later = tmp_path / "hospital" / NAME
    later.touch()
    assert books_around(folders) == [str(later)]
    assert folders_looked_at(config | {"release": {"book": "all.jsonl"}}, ["own"]) == []


def test_a_budget_holds_over_roots(images, tmp_path, monkeypatch):
    """As a reader found: 8 of a budget of 10 was spent by one root, and nothing by another."""
    events = [Event("x", "gaussian", 1 / mu_of(8, 1e-5), 1.0)]
    ledger = build_ledger(events, Budget("8", 1e-5), n=1000, unit="record", noise="secure")
    config = {"release": {"budget": "10"}, "data_root": "data"}
    for number, (root, location) in enumerate((("hospital", "images/scans"), ("hospital/images", "scans"))):
        monkeypatch.setenv("DPSTUDY_DATA", str(tmp_path / root))
        config["datasets"] = {"own": {"reader": "image_folder", "location": location}}
        book = Spending(tmp_path / f"{number}" / "spent.jsonl", ceiling="10", shared=books_of(config, ["own"]))
        records = records_of(config, "own")
        if number:
            both = upper_bound(epsilon_of(2**0.5 * mu_of(8, 1e-5), 1e-5))
            with pytest.raises(BeyondBudgetError, match=f"would have spent ε = {both} on these records .before it 8"):
                book.record("own", "a/b/c/eps=8", [0], ledger, records)
        else:
            book.record("own", "a/b/c/eps=8", [0], ledger, records)


def test_a_study_is_not_run_among_its_images(images, tmp_path, monkeypatch):
    monkeypatch.setenv("DPSTUDY_DATA", str(tmp_path / "hospital"))
    study = {"datasets": {"own": {"reader": "image_folder", "location": "images/scans"}}, "data_root": "data"}
    for folder in (images, images / "deeper"):
        with pytest.raises(StudyError, match=r"datasets.own.location: .*scans holds what this study reads"):
            check_run_folder(study, folder)
    for folder in (images.parent, tmp_path / "hospital", tmp_path):
        check_run_folder(study, folder)


# The log is moved with the data: what it says of folders is relative to it.

LEDGER = build_ledger(
    [Event("x", "gaussian", 1 / mu_of(8, 1e-5), 1.0)], Budget("8", 1e-5), n=1000, unit="record", noise="secure"
)


def study_of(root, monkeypatch, *locations, **release):
    monkeypatch.setenv("DPSTUDY_DATA", str(root))
    entries = {location: {"reader": "image_folder", "location": location} for location in locations}
    return {"datasets": entries, "release": release, "data_root": "data"}


def spend(config, name, results, cell="a/b/c/eps=8", **options):
    book = Spending(results / "spent.jsonl", shared=books_of(config, [name]), **options)
    book.record(name, cell, [0], LEDGER, records_of(config, name), folders=folders_of(config, name))
    return book


def forget_folders(log):
    """Make its lines those of an earlier version."""
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    log.write_text("".join(json.dumps({key: line[key] for key in line if key != "folders"}) + "\n" for line in lines))


@pytest.mark.parametrize(("way", "earlier"), [("moved", False), ("moved", True), ("renamed", False)])
def test_a_log_that_is_moved_or_whose_folder_is_renamed_forgets_nothing(tmp_path, monkeypatch, way, earlier):
    one, two = tmp_path / "nas1", tmp_path / "nas2"
    (one / "xrays").mkdir(parents=True)
    (one / "mri").mkdir()
    config = study_of(one, monkeypatch, "xrays", "mri")
    spend(config, "xrays", tmp_path / "first")
    spend(config, "mri", tmp_path / "first")
    lines = [json.loads(line) for line in (one / NAME).read_text().splitlines()]
    assert [line["folders"] for line in lines] == [["xrays"], ["mri"]], "as seen from the log"
    if earlier:
        forget_folders(one / NAME)
    if way == "moved":
        one.rename(two)
        config = study_of(two, monkeypatch, "xrays")
        (name,) = config["datasets"]
        config["datasets"] = {"other name": config["datasets"][name]}
    else:
        (one / "xrays").rename(one / "scans")
        config = study_of(one, monkeypatch, "scans")
    (name,) = config["datasets"]
    records = records_of(config, name)
    book = Spending(tmp_path / "second" / "spent.jsonl", ceiling="10", shared=books_of(config, [name]))
    counted = [line["dataset"] for line in book.everywhere() if about(line, name, records)]
    assert counted == (["xrays", "mri"] if earlier else ["xrays"])
    assert book.before(name, 1e-5, records, Protected("record")) >= 7.99
    with pytest.raises(BeyondBudgetError, match="before it") as refused:
        spend(config, name, tmp_path / "second", ceiling="10")
    lost = "write release: {accept: [other_records]}" in str(refused.value)
    assert lost == (earlier or way == "renamed"), "known by its folder, or not found"
    if lost:
        allowed = Spending(book.path, ceiling="10", shared=books_of(config, [name]), others=True)
        assert allowed.before(name, 1e-5, records, Protected("record")) == 0.0 and allowed.lost(name, records) == ""
    assert not any("lost" in line for line in map(json.loads, book.shared[0].path.read_text().splitlines()))


def test_other_data_sets_that_lie_where_they_lay_do_not_count(tmp_path, monkeypatch):
    """Those of one's own folder, and those that a log was told of by a results folder with studies of two roots."""
    for place in ("a/xrays", "b/mri"):
        (tmp_path / place).mkdir(parents=True)
    spend(study_of(tmp_path / "a", monkeypatch, "xrays"), "xrays", tmp_path / "results")
    config = study_of(tmp_path / "b", monkeypatch, "mri")
    book = spend(config, "mri", tmp_path / "results")
    told = [json.loads(line)["folders"] for line in (tmp_path / "b" / NAME).read_text().splitlines()]
    assert told == [["../a/xrays"], ["mri"]]
    records = records_of(config, "mri")
    assert [about(line, "mri", records) for line in book.everywhere()] == [False, True]
    elsewhere = Spending(tmp_path / "elsewhere" / "spent.jsonl", shared=books_of(config, ["mri"]))
    assert [about(line, "mri", records) for line in elsewhere.everywhere()] == [False, True]
    assert elsewhere.lost("mri", records) == ""


def test_an_earlier_version_s_lines_of_other_folders_below_a_log_do_not_count(tmp_path, monkeypatch):
    for name in ("xrays", "mri"):
        (tmp_path / name).mkdir()
    config = study_of(tmp_path, monkeypatch, "xrays", "mri")
    book = spend(config, "mri", tmp_path / "results")
    forget_folders(tmp_path / NAME)
    assert [about(line, "xrays", records_of(config, "xrays")) for line in book.everywhere()] == [False]


def test_a_log_has_one_name_whatever_links_lead_to_it(images, tmp_path, monkeypatch):
    """Its lock was taken twice, and waited for itself."""
    root = tmp_path / "root"
    root.mkdir()
    (root / "store").symlink_to(tmp_path / "hospital" / "images")
    config = study_of(root, monkeypatch, "store/scans")
    assert books_of(config, ["store/scans"]) == [str(images.parent / NAME)]
    linked = [images.parent / NAME, root / "store" / NAME]
    assert [book.path for book in Spending(tmp_path / "spent.jsonl", shared=linked).shared] == [images.parent / NAME]
    (images.parent / NAME).touch()
    (root / NAME).symlink_to(images.parent / NAME)
    assert len(Spending(tmp_path / "spent.jsonl", shared=[root / NAME, images.parent / NAME]).shared) == 1


def test_images_behind_links_on_a_store_that_cannot_be_written_to_need_a_log_by_name(images, tmp_path, monkeypatch):
    (tmp_path / "mine" / "xrays").mkdir(parents=True)
    (tmp_path / "mine" / "xrays" / "images").symlink_to(images)
    writable = os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode: not Path(path).is_relative_to(tmp_path / "hospital") and writable(path, mode)
    )
    config = study_of(tmp_path / "mine", monkeypatch, "xrays")
    logs = Spending(tmp_path / "spent.jsonl", shared=books_of(config, ["xrays"])).shared
    assert [log.path for log in logs] == [images.parent / NAME, tmp_path / "mine" / NAME]
    with pytest.raises(StudyError, match=r"images/dpstudy-spent.jsonl: cannot be written, .*release: {book: FILE}"):
        logs[0].check()
    config["release"]["book"] = str(tmp_path / "all.jsonl")
    assert books_of(config, ["xrays"]) == [str(tmp_path / "all.jsonl")]


@pytest.mark.parametrize("location", ["xrays", "."])
def test_a_log_among_the_records_has_the_name_that_readers_know(tmp_path, monkeypatch, location):
    (tmp_path / "xrays" / "inner").mkdir(parents=True)
    config = study_of(tmp_path, monkeypatch, "xrays")
    config["datasets"]["xrays"]["location"] = location
    for name in ("xrays/spent.jsonl", "xrays/inner/../spent.jsonl", str(tmp_path / "xrays" / "inner" / "all.jsonl")):
        config["release"]["book"] = name
        with pytest.raises(
            StudyError, match="release.book: .* among the records of xrays; call it dpstudy-spent.jsonl"
        ):
            check_book(config)
    for name in (f"xrays/{NAME}", "../spent.jsonl", *(["spent.jsonl"] if location != "." else [])):
        config["release"]["book"] = name
        check_book(config)
    check_book(config | {"release": {}})


@pytest.mark.parametrize("within", [".", "deeper"])
def test_links_behind_links_are_followed(tmp_path, monkeypatch, within):
    """Of a folder that a link leads to, the files that links in it lead to are read too."""
    monkeypatch.setattr(data_book, "_FRESH_SECONDS", 1e-9)
    for name in "abcd":
        (tmp_path / name / within).mkdir(parents=True)
    (tmp_path / "c" / within / "x.png").touch()
    (tmp_path / "b" / within / "x.png").symlink_to(tmp_path / "c" / within / "x.png")
    (tmp_path / "b" / within / "back").symlink_to(tmp_path / "a")
    (tmp_path / "b" / within / "loop").symlink_to("loop")
    (tmp_path / "a" / "link").symlink_to("../b")
    config = study_of(tmp_path, monkeypatch, *"abcd")
    line = {"dataset": "", "records": records_of(config, "a")}
    assert [about(line, name, records_of(config, name)) for name in "abcd"] == [True, True, True, False]


def test_features_that_are_brought_are_the_records_of_those_they_are_brought_for(tmp_path, monkeypatch):
    """Labels in two folders, of the same features; and the log beside features that lie elsewhere."""
    for name in ("one", "two", "images", "../feats"):
        (tmp_path / "data" / name).mkdir(parents=True)
    config = study_of(tmp_path / "data", monkeypatch, "one", "two", "images")
    config["features"] = {"mine": {"extractor": "precomputed", "location": "../feats"}, "own": {"extractor": "pixels"}}
    config["cells"] = [{"datasets": ["one", "t*"], "features": ["m*"]}, {"datasets": ["images"], "features": ["own"]}]
    line = {"dataset": "", "records": records_of(config, "one")}
    assert [about(line, name, records_of(config, name)) for name in config["datasets"]] == [True, True, False]
    assert str(tmp_path / "feats") in folders_of(config, "two")
    beside = str(tmp_path / NAME)
    assert beside in books_of(config, ["two"]) and beside not in books_of(config, ["images"])
    config["features"]["own"] = {"extractor": "joined", "parts": ["mine"]}
    assert about(line, "images", records_of(config, "images"))
    del config["cells"], config["features"]["own"]
    assert about(line, "images", records_of(config, "images")), "all combinations"
