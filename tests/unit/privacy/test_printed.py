"""No bound is printed smaller (a lower one: larger) than it is, wherever one is printed."""

import ast
import re
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpstudy.privacy.audit import certified_verdict, highest
from dpstudy.privacy.budget import Budget
from dpstudy.privacy.events import Event
from dpstudy.privacy.ledger import build_ledger
from dpstudy.privacy.printed import lower_bound, upper_bound
from dpstudy.release.statement import statement
from dpstudy.tables.words import ledger_in_words

WORKFLOW = Path(__file__).parents[3] / "workflow"
BOUND = re.compile(r"epsilon|delta|\beps\b|certified|audited", re.IGNORECASE)
SAID = re.compile(r"(ε|δ|epsilon|delta)( is)?( at (least|most))?( [=≤≥]| of)? ?$", re.IGNORECASE)
OTHERS = re.compile(r"rho_of\([^()]*\)|log\([^()]*\)|^Decimal\(.*")  # a claim's rho, a logarithm, exact decimals


@given(st.floats(1e-300, 1e6), st.integers(1, 8))
def test_digits_round_away_from_a_better_bound(value, digits):
    exact, up, down = Decimal(repr(value)), upper_bound(value, digits), lower_bound(value, digits)
    assert Decimal(down) <= exact <= Decimal(up)
    step = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    assert Decimal(up) - exact < step > exact - Decimal(down), "by less than one of the last digit"
    assert len(re.sub(r"^0\.0*|\.|e.*", "", up).strip("0") or "0") <= digits


@given(st.floats(0, 1e6), st.integers(0, 4))
def test_places_do_too(value, places):
    exact = Decimal(repr(value))
    up, down = upper_bound(value, places=places), lower_bound(value, places=places)
    assert Decimal(down) <= exact <= Decimal(up) and Decimal(up) - Decimal(down) <= Decimal(1).scaleb(-places)
    assert [len(text.partition(".")[2]) for text in (up, down)] == [places, places]


def test_what_needs_no_rounding_stays_as_it_is():
    for value, text in ((2.0, "2"), (0.1, "0.1"), (8e-7, "8e-7"), (1e-4, "0.0001"), (60000, "60000"), (0.0, "0")):
        assert upper_bound(value) == lower_bound(value) == text
    assert upper_bound(0.29, places=2) == lower_bound(0.29, places=2) == "0.29"  # 100 x 0.29 is 28.999999999999996
    assert upper_bound(1.949e-6, 2) == "2e-6" and upper_bound(1.949e-6) == "1.949e-6"
    assert upper_bound(float("inf")) == "∞"


DELTA, EPSILON = 1.23451e-6, 1.95001


@pytest.fixture
def ledger():
    event = Event("gram", "gaussian", 2.99996, 1.0, 1, "poisson", 0.123449)
    found = build_ledger([event], Budget("2", DELTA), n=1000, unit="record", noise="secure")
    return found | {"epsilon": EPSILON, "epsilon_by": {"exact": None, "pld": EPSILON, "rdp": 2.00001, "zcdp": None}}


def test_sentences_of_a_ledger_round_up(ledger):
    bounds = {"pld": EPSILON, "rdp": 2.00001, "exact": None, "bracket": None}
    words = ledger_in_words(ledger)
    for text in (words["summary"], statement(ledger, "model", bounds)):
        for value in (EPSILON, DELTA):
            printed = [found for found in numbers(text) if abs(found / Decimal(repr(value)) - 1) < Decimal("0.01")]
            assert printed and min(printed) >= Decimal(repr(value)), text
    assert "ε ≤ 1.951 at δ = 1.235e-6" in words["summary"] and "PLD 1.951, RDP 2.001" in words["others"]
    assert "δ = 1.235e-6. ε = 1.951." in statement(ledger, "model", bounds)
    assert "noise multiplier 2.999 " in words["events"][0] and "with rate 0.1235" in words["events"][0]  # the worse


def numbers(text: str) -> list[Decimal]:
    return [Decimal(found) for found in re.findall(r"\d+(?:\.\d+)?(?:e-\d+)?", text)]


def test_a_refuted_certificate_is_not_rounded_to_a_consistent_one():
    entry = {"statistic": "scores", "epsilon_lower": 1.2396}
    assert certified_verdict(highest([entry]), 1.23951) == "refuted: epsilon is at least 1.23, and 1.24 is certified."


def formatted(tree: ast.AST):
    """(what stands before it in the string, the expression, its format) of each value in an f-string."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            before = ""
            for part in node.values:
                if isinstance(part, ast.FormattedValue):
                    yield before, part.value, part.format_spec
                before = part.value if isinstance(part, ast.Constant) else ""


def rounded(text: str) -> list[str]:
    """Bounds in a module's text that are printed with some of their digits by other means than printed.py."""
    found = []
    tree = ast.parse(text)
    for before, value, spec in formatted(tree):
        source = OTHERS.sub("", ast.unparse(value))
        if spec is not None and (SAID.search(before) or BOUND.search(source)):
            found.append(f"{before}{{{source}}}")
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("round", "significant", "format", "np.round"):
            found += [ast.unparse(node)] if any(BOUND.search(ast.unparse(part)) for part in node.args) else []
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and isinstance(node.left, ast.Constant):
            found += [ast.unparse(node)] if isinstance(node.left.value, str) and BOUND.search(ast.unparse(node)) else []
    return found


@pytest.mark.parametrize(
    "line",
    [
        'f"ε = {found:.2f}"',
        "f'at δ = {x:.2g}'",
        "f\"{ledger['epsilon']:.4g} is certified\"",
        'f"certified: {certified:.4g}"',
        "significant(ledger['delta'])",
        "round(epsilon, 2)",
        '"%.2f" % epsilon',
        'f"epsilon at most {bound:.2f} so far"',
    ],
)
def test_the_search_below_finds_what_it_is_for(line):
    assert rounded(line)


@pytest.mark.parametrize(
    "line", ['f"ε = {upper_bound(found)}"', 'f"{accuracy:.1f} % at ε = {epsilon}"', "round(steps)"]
)
def test_and_nothing_else(line):
    assert not rounded(line)


def test_every_epsilon_and_delta_is_printed_by_one_function():
    wrong = {}
    for path in sorted(WORKFLOW.rglob("*.py")):
        found = rounded(path.read_text(encoding="utf-8"))
        if found:
            wrong[str(path.relative_to(WORKFLOW))] = found
    assert wrong == {}
    for path in (*WORKFLOW.rglob("*.j2"), *WORKFLOW.rglob("*.rst"), *WORKFLOW.rglob("*.smk")):
        for line in path.read_text(encoding="utf-8").splitlines():
            assert not (BOUND.search(line) and re.search(r"\|\s*round|%\.\d|:\.\d+[fg]|\bround\(", line)), (path, line)
