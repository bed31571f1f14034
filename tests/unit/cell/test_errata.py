"""Ledgers of earlier versions that may state something false are named, and no others."""

from pathlib import Path

import pytest

from dpstudy.cell import errata as module
from dpstudy.cell.errata import errata, own_rows
from dpstudy.cell.refusals import refusals
from dpstudy.data.names import NUMBERED as GOES_BY_NUMBER
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.events import Event
from dpstudy.privacy.ledger import build_ledger
from dpstudy.release.statement import statement

BOUNDS = {"exact": 1.0, "pld": None, "rdp": None, "bracket": None}


def ledger(delta=1e-7, n=60_000, unit="record", sampling="none", **more):
    rate = 1.0 if sampling == "none" else 0.01
    events = (Event("gradient", "gaussian", 8.0, 1.0, 10, sampling, rate),)
    return build_ledger(events, Budget("8", delta), n=n, unit=unit, noise="secure", **more)


def earlier(**changes):
    """As 0.1 wrote it."""
    found = ledger()
    del found["version"]
    return found | changes


SAMPLED = ledger(sampling="poisson")["events"]


@pytest.mark.parametrize(
    ("old", "facts", "expected"),
    [
        (earlier(), {}, []),
        (earlier(), {"network": "wrn-16-4"}, []),
        (earlier(), {"network": "tanh-28"}, []),
        (earlier(), {"network": "timm:vit_tiny+gn"}, []),
        (earlier(), {"network": "mine"}, [module.UNCHECKED]),
        (earlier(), {"unnamed": True}, [module.NUMBERED]),
        (earlier(not_accounted=[GOES_BY_NUMBER]), {}, [module.NUMBERED]),
        (earlier(unit="subject"), {}, [module.MISSING]),
        (earlier(events=SAMPLED, delta=1e-14), {}, [module.SMALL_DELTA]),
        (earlier(events=SAMPLED, delta=1e-13), {}, []),
        (earlier(delta=1e-14), {}, []),
        (earlier(n=1_281_167), {}, [module.ROUNDED]),
        (earlier(n=1_281_167, guarantee="none"), {}, []),
    ],
)
def test_each_false_statement_is_known_by_its_ledger(old, facts, expected):
    assert errata(old, **facts) == expected
    assert errata(old | {"version": "0.2.0"}, **facts) == []


def test_every_erratum_stands_on_its_page():
    page = (Path(__file__).parents[3] / "docs" / "errata.md").read_text(encoding="utf-8")
    for number, sentence in enumerate(
        (module.NUMBERED, module.MISSING, module.SMALL_DELTA, module.ROUNDED, module.UNCHECKED), start=1
    ):
        assert sentence.endswith(f"(erratum {number})") and f"\n## {number}. " in page


def test_a_benchmarks_format_of_ones_own_names_no_record():
    assert own_rows({"reader": "idx", "test_split": "private"})
    assert not own_rows({"reader": "idx", "test_split": "public"}) and not own_rows({"reader": "idx"})
    assert not own_rows({"reader": "chexpert", "test_split": "private"})


def test_a_bundle_of_such_a_ledger_is_refused_or_says_so():
    old = earlier(unit="subject")
    (sentence,) = refusals(old, "nothing", [], errata=errata(old))
    assert module.MISSING in sentence and "release: {accept: [errata]}" in sentence
    assert refusals(old, "nothing", [], accept=["errata"], errata=errata(old)) == []
    text = statement(old, "mine", BOUNDS, errata=errata(old))
    assert f"- **Erratum**: an earlier version of dpstudy wrote this ledger; {module.MISSING}." in text
    assert "Rounding inside floating-point sums" in text
    assert "Erratum" not in statement(ledger(), "mine", BOUNDS) and "Rounding" not in statement(
        ledger(), "mine", BOUNDS
    )
