import math

import pytest
from pypdf import PdfReader

from dpstudy.privacy.budget import Budget
from dpstudy.privacy.events import Event
from dpstudy.privacy.ledger import build_ledger
from dpstudy.privacy.trade_off import most_found
from dpstudy.release.sheet import write_sheet

FULL = (Event("sum", "gaussian", 1.0, 1.0),)  # mu = 1
SAMPLED = (Event("gradient", "gaussian", 1.0, 1.0, 100, "poisson", 0.02),)
MODEL = "0f" * 32


def ledger_of(events=FULL, unit="subject", sentences=(), n=412):
    budget, bounds = Budget("20", 1e-4), {"records": 3} if unit == "subject" else {}
    return build_ledger(events, budget, n=n, unit=unit, noise="secure", not_accounted=list(sentences), bounds=bounds)


def read(path):
    """(number of pages, text in one line)."""
    pages = PdfReader(path).pages
    return len(pages), " ".join(" ".join(page.extract_text() for page in pages).split())


def test_the_numbers_are_those_of_the_known_curve(tmp_path):
    """Of 1-Gaussian DP a coin is guessed with Phi(1/2) = 69.15 %; at false positives of 1 % the most is Phi(-1.326)."""
    write_sheet(tmp_path / "a.pdf", ledger_of(), "own/scatternet/default/eps=2", MODEL)
    pages, text = read(tmp_path / "a.pdf")
    assert pages == 1 and MODEL in text and "own/scatternet/default/eps=2" in text and "412 persons" in text
    assert "All images of a person are covered. Of a person at most 3 records were learned from." in text
    assert "Other models of the same records spend privacy of their own; it adds up." in text
    assert "right at most 69.2 %" in text
    assert "at most 93 are found by somebody who wrongly suspects 10 of 1,000" in text  # 92.4
    assert "at most 390 are found by somebody who wrongly suspects 100 of 1,000" in text  # 389.1
    assert all(words in text for words in ("For those who own the images", "For data protection", "signature"))
    write_sheet(tmp_path / "b.pdf", ledger_of(), "own/scatternet/default/eps=2", MODEL)
    assert (tmp_path / "a.pdf").read_bytes() == (tmp_path / "b.pdf").read_bytes()


@pytest.mark.parametrize("many", [1, 4, 20, 60])
def test_it_is_one_page_whatever_is_not_accounted(tmp_path, many):
    sentences = [
        f"Sentence {number} says what was done to the records outside of the ledger. " * 3 for number in range(many)
    ]
    write_sheet(tmp_path / "a.pdf", ledger_of(sentences=sentences), "cell", MODEL, errata=["its noise was too small"])
    pages, text = read(tmp_path / "a.pdf")
    assert pages == 1 and "Erratum: its noise was too small." in text and "Sentence 0 says" in text
    assert ("PRIVACY.md has them, and must be read" in text) == (many > 4) and "signature" in text
    assert ("reveal that a group is at risk" in text) == (many <= 4)


def test_images_are_promised_what_holds_for_images(tmp_path):
    write_sheet(tmp_path / "a.pdf", ledger_of(unit="record"), "cell", MODEL)
    text = read(tmp_path / "a.pdf")[1]
    assert "412 images." in text and "Persons as such" in text and "of a person" not in text


@pytest.mark.parametrize("events", [FULL, SAMPLED])
def test_what_is_found_at_most_is_a_bound_that_the_ledger_proves(events):
    """Never below the exact curve of what can be tested, nor above what each point of the profile says."""
    ledger = ledger_of(events)
    normal = math.sqrt(0.5)
    for rate in (0.0, 1e-4, 0.001, 0.01, 0.1, 0.5, 0.9, 1.0):
        found = most_found(ledger, rate)
        assert rate <= found <= min(1.0, math.exp(ledger["epsilon"]) * rate + ledger["delta"] + 1e-9)
        if events is FULL and 0 < rate < 1:
            from scipy.special import ndtri

            exact = math.erfc(-(ndtri(rate) + 1) * normal) / 2
            assert exact <= found <= exact * (1 + 1e-6) + 1e-12
    known = ledger["trade_off"]["true_positives"]
    assert [most_found(ledger, float(rate)) for rate in known] == pytest.approx([*known.values()], rel=1e-6)
    older = {key: value for key, value in ledger.items() if key != "trade_off"}
    assert most_found(older, 0.01) >= most_found(ledger, 0.01)
