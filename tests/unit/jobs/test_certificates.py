"""The certificates of a data set's cells: written where every ledger stands, refused where one does not."""

import pytest

from dpstudy.cell.errata import MISSING
from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json, write_json
from dpstudy.jobs.certificates import write_certificates
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.events import Event
from dpstudy.privacy.ledger import build_ledger

REPLAYS = {"pixels/ls": {"pairs": 3, "records": 64}}
GRAM = Event("gram", "gaussian", 7.0, 1.0)


@pytest.fixture
def cells(tmp_path):
    """Two cells of two seeds each."""
    made = []
    for epsilon in ("1", "2"):
        name = f"digits/pixels/ls/eps={epsilon}"
        ledger = build_ledger([GRAM], Budget(epsilon, 1e-5), n=1000, unit="record", noise="secure")
        write_json(tmp_path / name / "ledger.json", ledger)
        write_json(tmp_path / name / "run.json", {"seeds": [{"seed": s, "releases": {"gram": 1}} for s in (0, 1)]})
        files = {kind: str(tmp_path / name / f"{kind}.json") for kind in ("ledger", "run")}
        made.append({"name": name, **files})
    return made


def test_every_cell_is_certified(cells, tmp_path):
    write_certificates(cells, tmp_path / "digits.json", REPLAYS)
    found = read_json(tmp_path / "digits.json")["cells"]
    assert list(found) == [cell["name"] for cell in cells]
    for one in found.values():
        assert one["epsilon"] <= one["bounds"]["pld"] * 1.001 <= one["bounds"]["rdp"] and one["faults"] == []
        assert one["sums"] == "exact" and "errata" not in one
        assert one["replay"] == REPLAYS["pixels/ls"]


def test_ledgers_of_earlier_versions_are_named(cells, tmp_path):
    ledger = read_json(cells[0]["ledger"])
    del ledger["version"]
    write_json(cells[0]["ledger"], ledger | {"unit": "subject"})
    write_certificates(cells, tmp_path / "digits.json", REPLAYS)
    found = read_json(tmp_path / "digits.json")["cells"]
    assert found[cells[0]["name"]]["errata"] == [MISSING] and found[cells[0]["name"]]["sums"] == "rounded"
    assert "errata" not in found[cells[1]["name"]]


def test_nothing_is_written_where_a_ledger_falls(cells, tmp_path):
    run = read_json(cells[1]["run"])
    run["seeds"][1]["releases"]["gram"] = 2
    write_json(cells[1]["run"], run)
    told = "cell digits/pixels/ls/eps=2: its ledger does not stand, so that nothing is tabled: seed number 2 drew noise"
    with pytest.raises(StudyError, match=f"^{told}.*Delete results/cells/digits/pixels/ls/eps=2 .*in its method$"):
        write_certificates(cells, tmp_path / "digits.json", REPLAYS)
    ledger = read_json(cells[0]["ledger"])
    write_json(cells[0]["ledger"], ledger | {"epsilon": ledger["epsilon"] / 2})
    with pytest.raises(StudyError, match=r"eps=1: its ledger .* is stated, where .* \(1 further cells fall too\)$"):
        write_certificates(cells, tmp_path / "digits.json", REPLAYS)
    assert not (tmp_path / "digits.json").exists()


def test_what_is_not_proved_is_not_replayed_and_says_so(cells, tmp_path):
    ledger = read_json(cells[0]["ledger"])
    write_json(cells[0]["ledger"], ledger | {"epsilon": None, "guarantee": "none"})
    write_certificates(cells, tmp_path / "digits.json", REPLAYS)
    found = read_json(tmp_path / "digits.json")["cells"]
    assert found[cells[0]["name"]]["replay"] == {"exempt": "its guarantee is: none"}
