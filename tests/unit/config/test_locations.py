"""Books beside the data: whoever reads the same images, by whatever root, finds what was spent of them."""

import pytest

from dpstudy.config.locations import books_of, check_run_folder, folders_looked_at, records_of
from dpstudy.core.errors import StudyError
from dpstudy.privacy import data_book
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.data_book import NAME, books_around
from dpstudy.privacy.events import Event
from dpstudy.privacy.gaussian import epsilon_of, mu_of
from dpstudy.privacy.ledger import build_ledger
from dpstudy.privacy.printed import upper_bound
from dpstudy.privacy.spending import BeyondBudgetError, Spending


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
