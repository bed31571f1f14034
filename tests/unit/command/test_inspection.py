"""Ledgers in words."""

import json

import numpy as np
import pytest

from dpstudy import fit
from dpstudy.command.inspection import inspected
from dpstudy.core.errors import StudyError


def ledger_of(**options):
    drawn = np.random.default_rng(0)
    features, labels = drawn.standard_normal((500, 3)), drawn.integers(2, size=500)
    return fit("least_squares", features, labels, classes=2, delta=1e-5, **{"epsilon": 1} | options).ledger


def shown(tmp_path, ledger):
    (tmp_path / "ledger.json").write_text(json.dumps(ledger))
    whole = "\n".join(inspected(str(tmp_path)))
    assert "\n".join(inspected(str(tmp_path / "ledger.json"))) == whole
    return whole


def test_a_proved_guarantee_is_said_and_certified_anew(tmp_path):
    told = shown(tmp_path, ledger_of(noise="secure"))
    assert "adding or removing one record" in told and "among 500" in told
    assert "**Computed by** exact Gaussian DP; by accountants that had no part in the training" in told
    assert "from the operating system's entropy" in told and "not for release" not in told
    assert told.count("\n- ") >= 6


def test_seeded_noise_is_said_to_be_not_for_release(tmp_path):
    assert "from a seeded generator: for research, and not for release" in shown(tmp_path, ledger_of())


def test_no_guarantee_is_said_to_be_none(tmp_path):
    told = shown(tmp_path, ledger_of(epsilon="inf"))
    assert "There is no guarantee." in told and "**The promise**" not in told and "Computed by" not in told
    shared = shown(tmp_path, ledger_of(shared_noise=True))
    assert "There is no guarantee." in shared and "One noise vector was added" in shared


@pytest.mark.parametrize("changed", [{"epsilon": 0.5}, {"guarantee": "none"}])
def test_a_ledger_that_does_not_stand_is_put_in_no_words(tmp_path, changed):
    (tmp_path / "ledger.json").write_text(json.dumps(ledger_of(noise="secure") | changed))
    with pytest.raises(StudyError, match="does not stand: .*epsilon .* is stated.* Take it from its owner again"):
        inspected(str(tmp_path))
    with pytest.raises(StudyError, match="none: no such folder or file"):
        inspected(str(tmp_path / "none"))


@pytest.mark.parametrize("content", ["{}", '{"version": "0.2.0", "epsilon": 1}', "[]", "no JSON"])
def test_what_is_no_ledger_is_told(tmp_path, content):
    (tmp_path / "ledger.json").write_text(content)
    with pytest.raises(StudyError, match="ledger.json"):
        inspected(str(tmp_path))


def test_a_book_is_left_where_it_is_and_a_total_is_no_ledger(tmp_path):
    """Whoever is told to delete what cannot be read would delete the only trace of what was spent."""
    for name, content, words in (
        ("spent.jsonl", '{"cell": "a"}\n{"cell": "b"}\n', "is a book of what was spent.*; leave it where it is"),
        ("total.json", '{"datasets": {}, "others": {}}', "is no ledger of one model"),
    ):
        (tmp_path / name).write_text(content)
        with pytest.raises(StudyError, match=words) as told:
            inspected(str(tmp_path / name))
        assert "total.json says what is spent in all" in str(told.value) and "delete" not in str(told.value)


def test_a_folder_without_a_ledger_is_told(tmp_path):
    with pytest.raises(StudyError, match="no bundle and no ledger.json"):
        inspected(str(tmp_path))
