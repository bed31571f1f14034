"""Claims of tramer2021 that rest on searches, printed settings and accounting."""

import dataclasses
import itertools

import pytest

from dpstudy.tables import printed_layers
from dpstudy.tables.claims import tramer2021_settings
from dpstudy.tables.claims.finding import CELLS, COMPUTED, FAILS, HOLDS, OPEN, PRINTED
from dpstudy.tables.claims.scores import Scores, Search
from tests.scenarios.claims.agreeing_study import COMMON, FUNCTIONS, SETTINGS, as_the_paper_says, evidence, run, verdict

SEARCHES = {
    ("CIFAR-10", "linear"): (60.0, 67.0, 65.0, 0.9),
    ("CIFAR-10", "scatter-cnn"): (57.0, 69.0, 67.0, 1.6),
    ("CIFAR-10", "cnn"): (40.0, 59.0, 52.0, 5.0),
    ("MNIST", "linear"): (97.0, 98.8, 98.5, 0.2),
    ("MNIST", "scatter-cnn"): (96.0, 98.8, 98.2, 0.3),
    ("MNIST", "cnn"): (86.0, 98.2, 97.0, 0.5),
}
NAMES = ("min", "max", "median", "mad")


def searched(**changes):
    """Scores of searches alone; `changes`: statistic of the linear models."""
    found = {}
    for key, values in SEARCHES.items():
        statistics = dict(zip(NAMES, values, strict=True)) | (changes if key[1] == "linear" else {})
        found[key] = Search(statistics, trials())
    return Scores({}, searches=found)


def trials(**gains):
    """A grid of three parameters at two or three values, as parquet gives them; `gains`: value -> points."""
    grid = itertools.product(("512", "1024", "2048"), ("0.25", "1"), ("15", "40"), ("GN 9", "DN 8"))
    return [
        {
            "batch_size": b,
            "learning_rate": r,
            "epochs": e,
            "label": n,
            "value": 95.0 + 0.1 * (e == "40") + sum(gains.get(key, 0) for key in (f"b{b}", f"r{r}", f"e{e}", n[:2])),
        }
        for b, r, e, n in grid
    ]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("worst_over_best", {"min": 58.0}),
        ("median_over_best", {"median": 98.0}),
        ("spread", {"mad": 2.0}),
        ("random_settings", {"median": 63.5}),
    ],
)
def test_statistics_of_searches_decide(name, change):
    assert verdict(name, searched()) == (HOLDS, CELLS)
    assert verdict(name, searched(**change)) == (FAILS, CELLS)


def test_a_search_with_failed_trials_decides_nothing():
    ours = searched()
    failed = {key: dataclasses.replace(search, failed=2) for key, search in ours.searches.items()}
    found = {name: FUNCTIONS[name](evidence(Scores({}, searches=failed))) for name in ("worst_over_best", "spread")}
    for finding in found.values():  # as the paper prints them: ours tell nothing
        assert (finding.verdict, finding.decided_by) == (HOLDS, PRINTED)
        assert "linear on CIFAR-10: 2 trials failed" in finding.here
    only = dict(ours.searches) | {("MNIST", "linear"): failed["MNIST", "linear"]}
    assert verdict("spread", Scores({}, searches=only)) == (HOLDS, CELLS)


def one_search(model, **gains):
    return Scores({}, searches={("MNIST", model): Search({}, trials(**gains))})


@pytest.mark.parametrize(
    ("model", "gains", "outcome"),
    [
        ("linear", {}, HOLDS),
        ("linear", {"b2048": -3}, FAILS),
        ("cnn", {"b2048": -3}, HOLDS),  # overly large batches are excepted, for CNNs alone
        ("cnn", {"b512": -3}, FAILS),
        ("cnn", {"r0.25": -3}, HOLDS),
        ("cnn", {"e15": -3}, FAILS),
        ("linear", {"GN": -3}, FAILS),  # the normalisation is a parameter of Figure 8 too
        ("cnn", {"DN": -3}, FAILS),
    ],
)
def test_the_maximum_with_one_parameter_fixed(model, gains, outcome):
    assert verdict("maximum_is_stable", one_search(model, **gains)) == (outcome, CELLS)


def test_best_settings_at_the_end_of_a_range():
    found = FUNCTIONS["boundary"](evidence(one_search("linear")))
    assert found.verdict == HOLDS and "at most 0.10 points (MNIST linear epochs = 40)" in found.here
    assert "5 of 9 best settings" in found.printed
    assert verdict("boundary", one_search("linear", e40=1.0)) == (FAILS, CELLS)
    assert verdict("boundary", one_search("linear", b1024=1.0, e40=-0.1)) == (HOLDS, CELLS)  # the best batch is inside


def with_setting(parameter, value, **where):
    return [
        row | {"value": value} if row["parameter"] == parameter and where.items() <= row.items() else row
        for row in SETTINGS
    ]


@pytest.mark.parametrize(
    ("name", "settings", "before"),
    [
        (
            "longer_with_more_data",
            with_setting("base_learning_rate", "1/16", table="16", model="CNN", delta="2e-6"),
            HOLDS,
        ),
        ("common_settings", with_setting("clipping_norm", "1", table="12", dataset="MNIST"), HOLDS),
        ("lower_rate_with_noise", with_setting("learning_rate_high", "1/2", table="14", dataset="CIFAR-10"), OPEN),
    ],
)
def test_a_verdict_turns_when_a_printed_setting_does(name, settings, before):
    assert settings != SETTINGS
    assert verdict(name)[0] == before and verdict(name, settings=settings)[0] == FAILS


def test_settings_and_shapes_are_decided_by_our_cells():
    ours = as_the_paper_says()
    assert verdict("common_settings", ours) == verdict("scatternet_shapes", ours) == (HOLDS, CELLS)
    other = run("linear", "MNIST", 3.0, 98.0, parameters=39_700, hyperparameters=COMMON | {"clipping_norm": 1.0})
    assert verdict("common_settings", Scores({}, [other])) == (FAILS, CELLS)
    small = run("linear", "MNIST", 3.0, 98.0, parameters=7_850)
    assert verdict("scatternet_shapes", Scores({}, [small])) == (FAILS, CELLS)


def test_accounting_is_computed(monkeypatch):
    noise = FUNCTIONS["noise_and_rate"](evidence()).printed
    assert "B = 512: 15.1, B = 1024: 14.3, B = 2048: 13.9" in noise and "16384: 13.4" in noise and "256: 16.4" in noise
    monkeypatch.setattr(tramer2021_settings, "CONSTANT", 0.1)
    assert verdict("noise_and_rate") == (FAILS, COMPUTED)
    assert "σ = 8, α = 2: composed 0.031250" in FUNCTIONS["normalisation_privacy"](evidence()).printed
    monkeypatch.setattr(tramer2021_settings, "rdp_curve", lambda events, orders: [order / 72 for order in orders])
    assert verdict("normalisation_privacy") == (FAILS, COMPUTED)  # as if one of the two releases were free
    monkeypatch.setattr(tramer2021_settings, "plain_conversion", lambda events, delta: 0.1)
    assert verdict("plain_conversion_valid") == (FAILS, COMPUTED)


def test_noise_by_iteration_is_computed(monkeypatch):
    """The paper's accounting agrees with its Figure 9 at both ends, certified noise at neither."""
    found = FUNCTIONS["iteration_noise"](evidence())
    assert "it holds" in found.printed and "ε = 3: 0.93 and 3.55" in found.printed
    assert "ε = 0.15: none and" in found.printed and "ε = 50: 0.35 and 0.33" in found.printed
    assert found.verdict == FAILS and "ε = 0.1: 9.92 and 23.66" in found.here and "ε = 10: 0.55 and 0.38" in found.here

    def as_stated(epsilon, accounting):
        return (1.0, 2.0) if 0.2 <= float(epsilon) <= 40 else (2.0, 1.0)

    monkeypatch.setattr(tramer2021_settings, "_levels", as_stated)
    assert verdict("iteration_noise") == (HOLDS, COMPUTED)
    for low, high in ((0.0, 40.0), (0.2, 60.0)):  # one of the ends missed
        monkeypatch.setattr(
            tramer2021_settings, "_levels", lambda e, a, low=low, high=high: (1 + (not low <= float(e) <= high), 1.5)
        )
        assert verdict("iteration_noise") == (FAILS, COMPUTED)


def test_what_more_records_allow_is_computed(monkeypatch):
    found = FUNCTIONS["more_steps_for_more_records"](evidence())
    assert found.verdict == HOLDS and "N = 50,000: 3,839 steps with σ = 14.16, or σ = 3.25 for 183" in found.printed
    monkeypatch.setattr(tramer2021_settings, "_steps_and_noise", lambda records: (1000, 10_000 / records))
    assert verdict("more_steps_for_more_records") == (FAILS, COMPUTED)
    monkeypatch.setattr(tramer2021_settings, "_steps_and_noise", lambda records: (records, 1.0))
    assert verdict("more_steps_for_more_records") == (FAILS, COMPUTED)


def test_what_the_printed_noise_certifies_is_said():
    ours = as_the_paper_says(("MNIST",))
    assert (
        "MNIST: noise for ε = 3 by the lemma certifies 2.41" in FUNCTIONS["plain_conversion_valid"](evidence(ours)).here
    )
    assert "MNIST: 2.41 instead of 3" in FUNCTIONS["tighter_analysis"](evidence(ours)).here


def test_the_printed_layers(monkeypatch):
    assert {model: printed_layers.parameters(model) for model in printed_layers.table_4()} == {
        "ScatterNet+Linear (MNIST and Fashion-MNIST)": 39_700,
        "ScatterNet+Linear (CIFAR-10)": 155_530,
        "ScatterNet+CNN (MNIST and Fashion-MNIST)": 20_778,
        "ScatterNet+CNN (CIFAR-10)": 179_530,
        "End-to-end CNN (MNIST and Fashion-MNIST)": 26_010,
        "End-to-end CNN (CIFAR-10)": 550_570,
        "End-to-end CNN, smaller (CIFAR-10)": 167_642,
    }
    assert "33,066 without Table 8's poolings, 187,210 with one" in FUNCTIONS["counts_follow"](evidence()).printed
    changed_table = printed_layers.table_4() | {"End-to-end CNN (CIFAR-10)": "600K"}
    monkeypatch.setattr(tramer2021_settings, "table_4", lambda: changed_table)
    assert verdict("counts_follow") == (FAILS, COMPUTED)
