"""Claims of de2022 that rest on printed numbers and settings: each breaks when a number is altered."""

import re

import pytest

from dpstudy.provenance.code import WORKFLOW
from dpstudy.tables.claims import de2022_privacy, de2022_schedule, de2022_techniques
from dpstudy.tables.claims.de2022_printed import PAPER
from dpstudy.tables.claims.finding import COMPUTED, FAILS, HOLDS, MEASUREMENT, OPEN, PRINTED
from dpstudy.tables.claims.judge import judge
from dpstudy.tables.published import TIMINGS, published_rows
from tests.scenarios.claims.agreeing_de2022 import FUNCTIONS, ROWS, SETTINGS, evidence, verdict

ACCOUNTING, TUNING = "recomputed", "tuning-is-free"
BOUNDS, ADVANTAGE = "tighter-on-small-sets", "advantage-in-closed-form"
PROTOCOL = "protocol"
COST, STEPS = "cost", "steps-with-epsilon"
FIGURE_4, FIGURE_5 = "depth-and-mode", "more-images"
FIGURE_6 = "noise-at-the-optimum"
HEADLINE = "headline"


def altered(value, **where):
    """The rows of results.csv with some values changed."""
    return [row | {"value": value} if where.items() <= row.items() else row for row in ROWS]


def with_setting(parameter, value, **where):
    """The rows of hyperparameters.csv with some values changed."""
    return [
        row | {"value": value} if row["parameter"] == parameter and where.items() <= row.items() else row
        for row in SETTINGS
    ]


@pytest.mark.parametrize(
    ("name", "rows", "before", "after"),
    [
        ("prose-and-table", altered("78.7", table="3", model="WRN-16-4", epsilon="8"), HOLDS, FAILS),
        (
            "prose-and-table-of-fine-tuning",
            altered("94.8", table="1", pretraining="ImageNet-32", epsilon="1"),
            HOLDS,
            FAILS,
        ),
        ("all-layers-first", altered("70.4", table="5", dataset="CIFAR-100", epsilon="1"), FAILS, OPEN),
        ("over-earlier", altered("94.0", table="5", method="DP-SGD (all layers)", epsilon="1"), OPEN, FAILS),
        ("no-violation", altered("4.1", table="9", metric="eps_lower_bound", epsilon="4"), HOLDS, FAILS),
        (BOUNDS, altered("0.4", metric="eps_lower_bound", epsilon="2", method="DP-SGD audit (|D|=60K)"), FAILS, HOLDS),
        (ADVANTAGE, altered("0.77", metric="membership_advantage_upper_bound", epsilon="2"), HOLDS, FAILS),
        (ADVANTAGE, altered("0.5", metric="membership_advantage", epsilon="1"), HOLDS, FAILS),
        (HEADLINE, altered("86.5", table="6", metric="top1", epsilon="8"), OPEN, FAILS),
        ("places", altered("54.3", table="7", metric="top1", method="DP-SGD (all layers)"), OPEN, FAILS),
        ("from-cifar100", altered("75.7", table="11", epsilon="1", model="WRN-40-4"), OPEN, FAILS),
    ],
)
def test_a_verdict_turns_when_a_printed_number_does(name, rows, before, after):

    assert rows != ROWS
    assert verdict(name)[0] == before
    assert verdict(name, rows=rows)[0] == after


def test_verdicts_on_the_printed_numbers_alone():
    judged = judge(PAPER, evidence())
    found = [(row["section"], finding.verdict, finding.decided_by) for row, finding in judged]
    assert [(section, by) for section, outcome, by in found if outcome == FAILS] == [
        ("4.1", PRINTED),
        ("4.2", PRINTED),
        ("6", MEASUREMENT),
        ("A.2", PRINTED),
    ]
    assert [(section, by) for section, outcome, by in found if outcome == HOLDS] == [
        ("3.1", COMPUTED),
        ("3.2", PRINTED),
        ("4.1 vs Table 5", PRINTED),
        ("A.2, Table 9", PRINTED),
        ("A.2", COMPUTED),
        ("2.2; A", COMPUTED),
        ("2.2", COMPUTED),
        ("6", MEASUREMENT),
    ]
    assert all(finding.here for _, finding in judged if finding.verdict == OPEN)


def test_the_printed_settings_spend_the_printed_epsilon():
    text = FUNCTIONS[ACCOUNTING](evidence()).printed
    assert "47 of 49 settings within 1%" in text and "the worst -2.2% (Table 20, all layers, ε = 1)" in text
    assert "N = 45,000" in text and "Table 13, ε = 8; Table 20, ε = 0.5, 1, 1.5, 2, 4, 6, 8" in text
    assert "11% to 13% less" in text and "Not reproduced" not in text
    less = with_setting("noise_multiplier", "2.3", table="15")
    found = FUNCTIONS[ACCOUNTING](evidence(settings=less))
    assert (found.verdict, found.decided_by) == (FAILS, COMPUTED) and "Not reproduced: Table 15" in found.printed
    more = with_setting("noise_multiplier", "2.8", table="15")
    assert verdict(TUNING) == (HOLDS, COMPUTED) and verdict(TUNING, settings=more) == (FAILS, COMPUTED)
    assert "48 of 49" in FUNCTIONS[TUNING](evidence(settings=more)).printed


@pytest.mark.parametrize(
    ("claim", "settings"),
    [
        (FIGURE_4, with_setting("n_train", "1000000", table="12", dataset="ImageNet-1k")),
        (FIGURE_5, with_setting("num_updates", "5000", table="21", epsilon="8")),
        (FIGURE_5, with_setting("noise_multiplier", "8.0", table="21", epsilon="8")),
        (FIGURE_6, with_setting("n_train", "50000", table="12", dataset="CIFAR-10")),
    ],
)
def test_figures_whose_settings_spend_another_epsilon(claim, settings):
    assert settings != SETTINGS
    assert verdict(claim) == (OPEN, "") and verdict(claim, settings=settings) == (FAILS, COMPUTED)


def test_what_figures_spend_is_said():
    assert "136 epochs spend ε = 8.00" in FUNCTIONS[FIGURE_4](evidence()).printed
    assert "825 epochs" in FUNCTIONS[FIGURE_5](evidence()).printed
    assert "N = 45,000 spend ε = 8.05" in FUNCTIONS[FIGURE_6](evidence()).printed
    imagenet = FUNCTIONS["imagenet"]
    assert "71,589 updates are 923 epochs" in imagenet(evidence()).printed


def test_steps_in_proportion_to_epsilon():
    found = FUNCTIONS[STEPS](evidence())
    assert (found.verdict, found.decided_by) == (FAILS, PRINTED)
    assert "Table 13 0.50, Table 14 0.38, Table 16 1.00" in found.printed and "4 of 9 depart" in found.printed
    linear = [row for row in SETTINGS if row["table"] not in ("13", "14", "20", "22")]
    assert verdict(STEPS, settings=linear) == (OPEN, "")


def test_private_training_takes_more_epochs_and_time(monkeypatch):
    text = FUNCTIONS[COST](evidence())
    assert "all layers: 509 epochs with privacy, 5 without" in text.printed and verdict(COST) == (FAILS, MEASUREMENT)
    assert "NF-ResNet-50 (TF32, H200) 1.4 times" in text.here and "(bfloat16, K = 16, H200) 1.4 times" in text.here
    slow = {"device": "TPUv3", "network": "NF-ResNet-50", "precision": "float32", "copies": "1", "times": "9"}
    with monkeypatch.context() as patched:
        patched.setattr(de2022_schedule, "published_rows", lambda path, paper: [slow])
        assert verdict(COST) == (HOLDS, MEASUREMENT)
    quick = with_setting("num_updates", "1000", table="23", epsilon="8")
    assert verdict(COST, settings=quick) == (FAILS, PRINTED)


def test_timings_are_those_that_the_page_on_networks_has():
    page = (WORKFLOW.parent / "docs" / "networks.md").read_text(encoding="utf-8")
    table = page.partition("one H200 (`python -m benchmarks gpu`)")[2].partition("##")[0]
    shown = {times for row in table.splitlines() for times in re.findall(r"^\|[^|]*\| \S+ \((\S+)\)", row)}
    assert shown - {row["times"] for row in published_rows(TIMINGS, "de2022")} == {"4.9", "2.3"}  # compiled, and lite0


def test_computations_break_when_what_they_rest_on_does(monkeypatch):
    assert "lower bound of 11.0" in FUNCTIONS[PROTOCOL](evidence()).printed and verdict(PROTOCOL) == (OPEN, "")
    monkeypatch.setattr(de2022_privacy, "_EVALUATED", 990_000)
    assert verdict(PROTOCOL) == (FAILS, COMPUTED)
    monkeypatch.setattr(de2022_techniques, "_clipped", lambda gradient: gradient)
    assert verdict("same-sensitivity") == (FAILS, COMPUTED)


def test_the_limit_of_scatternet_models_is_quoted_beside_the_claim():
    assert "71.1 (linear), 73.8 (ScatterNet+CNN)" in FUNCTIONS["scatternet-first"](evidence()).printed


def test_citations():
    assert verdict("later-results") == (OPEN, "")
    assert "mehta2023's best now 86.8" in FUNCTIONS["concurrent-result"](evidence()).printed
