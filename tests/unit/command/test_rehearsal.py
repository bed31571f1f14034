"""What a rehearsal is made of, without running it."""

import csv
import signal
import sys

import pytest
import yaml

from dpstudy.command import rehearsal
from dpstudy.command.rehearsal import _end, _stood_in, rehearse
from dpstudy.config.locations import books_of
from dpstudy.privacy.data_book import NAME
from tests.workflow.clinic import CONFIG, write_clinic


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A function: location, kind of place -> (config of a rehearsal there, its place), the true log beside the data."""
    monkeypatch.delenv("DPSTUDY_DATA", raising=False)

    def stood_in(location, place, **changes):
        root = tmp_path / "data"
        write_clinic(root / location)
        (root / "public").mkdir()
        for name in (NAME, f".{NAME}.lock"):
            (root / name).touch()
        entry = CONFIG["datasets"]["clinic"] | {"location": location} | changes
        config = CONFIG | {"datasets": {"clinic": entry}, "data_root": str(root)}
        (tmp_path / "mine.yaml").write_text(yaml.safe_dump(config))
        path, _, _ = _stood_in(str(tmp_path / "mine.yaml"), tmp_path / place)
        return yaml.safe_load(path.read_text()), tmp_path / place

    return stood_in


@pytest.mark.parametrize("place", ["elsewhere/rehearsal", "data/work/rehearsal"])
def test_it_has_a_log_of_its_own_wherever_it_lies(study, place):
    """The true one was written to, or waited for under its own lock for ever."""
    config, folder = study("clinic", place)
    assert books_of(config, ["clinic"]) == [str(folder / "data" / NAME)]
    assert config["release"]["budget"] == CONFIG["release"]["budget"]
    assert {path.name for path in (folder / "data").iterdir()} == {"drawn-clinic", "public"} | (
        {"work"} if "work" in place else set()
    )


def test_records_may_lie_in_the_data_root_itself(study):
    config, folder = study(".", "rehearsal")
    assert config["datasets"]["clinic"]["location"] == "drawn-clinic"
    with open(folder / "data/drawn-clinic" / config["datasets"]["clinic"]["table"], newline="") as file:
        assert len(list(csv.DictReader(file))) == 184
    assert (folder / "data/public").is_symlink() and not list((folder / "data").glob(f"*{NAME}*"))


def test_what_is_public_beside_private_records_is_there(study, tmp_path):
    """Below a folder of both, which was left out as a whole."""
    for name in ("public/a.png", "spare/xrays/b.png"):
        (tmp_path / "data/hospital" / name).parent.mkdir(parents=True)
        (tmp_path / "data/hospital" / name).touch()
    (tmp_path / "data/hospital" / NAME).touch()
    (tmp_path / "data/hospital/circle").symlink_to(tmp_path / "data/hospital")
    (tmp_path / "data/hospital/spare/top").symlink_to(tmp_path / "data")
    config, folder = study("hospital/xrays", "rehearsal")
    assert config["datasets"]["clinic"]["location"] == "drawn-clinic"
    assert (folder / "data/hospital/public/a.png").exists() and (folder / "data/hospital/spare/xrays/b.png").exists()
    assert {path.name for path in (folder / "data/hospital").iterdir()} == {"public", "spare"}


class Child:
    def __init__(self):
        self.ended = 0

    def terminate(self):
        self.ended += 1


def test_a_run_is_ended_once_however_often_one_asks():
    """A second signal does not get in the way of what the first began."""
    ended, child = [], Child()
    for _ in range(3):
        _end(ended, lambda: [child])
    assert child.ended == 1 and ended == [signal.SIGTERM]


def test_where_no_run_is_under_way_none_begins():
    with pytest.raises(SystemExit) as told:
        _end([], list)
    assert told.value.code == 143


def test_the_handler_imports_nothing_and_stands_before_anything_is_drawn(monkeypatch, tmp_path):
    seen = []
    monkeypatch.delitem(sys.modules, "psutil", raising=False)
    monkeypatch.setattr(rehearsal.signal, "signal", lambda *_: seen.append("psutil" in sys.modules))
    monkeypatch.setattr(rehearsal, "_stood_in", lambda *_: pytest.fail("drawn") if not seen else 1 / 0)
    with pytest.raises(ZeroDivisionError):
        rehearse("mine.yaml", str(tmp_path / "rehearsal"), "1", False)
    assert seen == [True]
