"""The zoo fits the library, a page says what is in it, and a few of its faults are caught (`make mutants`: all)."""

import subprocess
import sys
from dataclasses import replace

import pytest

from tests.mutants.__main__ import run
from tests.mutants.mutants import PAGE, ROOT, ZooError, load, page

MUTANTS = load()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.id)
def test_a_mutant_can_be_applied_and_its_tests_are_there(mutant):
    text = mutant.applied(ROOT)
    undefined = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "F821", "--quiet", "-"]
    said = subprocess.run(undefined, input=text, capture_output=True, text=True, check=False)
    assert said.returncode == 0, f"it would break the program, and be no fault of privacy:\n{said.stdout}"
    for test in mutant.tests:
        file, _, name = test.partition("::")
        assert f"def {name.partition('[')[0]}(" in (ROOT / file).read_text(encoding="utf-8"), test


def test_the_page_has_what_the_zoo_says():
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    same = page(text, MUTANTS) == text
    assert same, f"{PAGE} counts others than tests/mutants/zoo has: run make mutants"


def test_a_text_that_is_gone_or_not_alone_is_named():
    mutant = MUTANTS[0]
    for old, times in (("no such text", 0), ("import", "[0-9]+")):
        with pytest.raises(ZooError, match=f"mutant {mutant.id}: its text stands {times} times in .*must be once"):
            replace(mutant, old=old).applied(ROOT)
    with pytest.raises(ZooError, match="changes nothing"):
        replace(mutant, new=mutant.old).applied(ROOT)
    with pytest.raises(ZooError, match="is no Python"):
        replace(mutant, new="(").applied(ROOT)


def test_quick_ones_are_caught_and_what_is_no_fault_survives():
    """By tests that pass without them, as the rest of this run sees."""
    quick = [mutant for mutant in MUTANTS if mutant.quick]
    total = next(mutant for mutant in quick if mutant.id == "counts-do-not-add-up")
    none = [replace(total, id=more, new=f"{total.old} + {more}") for more in ("0.0", "no_such_name")]
    outcomes = run([*none, *quick], whole=False)
    assert "passes" in outcomes[0].survived and "NameError" in outcomes[1].survived
    assert len(quick) >= 5 and not [outcome for outcome in outcomes[2:] if outcome.survived]
