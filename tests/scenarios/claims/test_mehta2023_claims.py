"""Claims of mehta2023: each is judged by one function, whose verdict turns when the numbers do."""

import dataclasses
import math

import pytest

from dpstudy.core.errors import StudyError
from dpstudy.tables.claims import mehta2023_accuracy as accuracies
from dpstudy.tables.claims import mehta2023_settings as settings
from dpstudy.tables.claims.finding import CELLS, COMPUTED, FAILS, HOLDS, OPEN, PRINTED, Part
from dpstudy.tables.claims.grid import Value, average, compare
from dpstudy.tables.claims.judge import judge, judges
from dpstudy.tables.claims.mehta2023_printed import Grid, Place, printed_scores
from dpstudy.tables.claims.scores import Evidence, Run
from dpstudy.tables.published import HYPERPARAMETERS, RESULTS, published_rows
from tests.scenarios.claims.left_over import found_in, judging

ROWS = published_rows(RESULTS, "mehta2023")
SETTINGS = published_rows(HYPERPARAMETERS, "mehta2023")
EPSILONS = ("0.01", "0.05", "0.1", "0.5", "1", "2", "4", "8", "inf")
STEPS = {"DP-LS": (1,), "DP-Newton": (1, 10), "DP-FC": (1, 10), "DP-Adam": (1, 10, 100)}
ORDER = ("small", "large")
JUDGES = judges("mehta2023")  # of some the entry says all


def name_of(claim):
    """The id of the claim that something judges."""
    return next(name for name, judge in JUDGES.items() if judge == claim)


def ours(accuracy, error=0.05, datasets=("CIFAR-10", "CIFAR-100"), order=ORDER):
    """A grid of our cells; `accuracy(method, epochs, epsilon, pretraining)` in percent."""
    values = {
        (Place(dataset, label), (method, epochs), float(epsilon)): Value(
            accuracy(method, epochs, float(epsilon), label), error
        )
        for dataset in datasets
        for label in order
        for method, steps in STEPS.items()
        for epochs in steps
        for epsilon in EPSILONS
    }
    return Grid(values, order=order)


def evidence(grid=None, rows=ROWS, hyperparameters=SETTINGS, cells=()):
    return Evidence(printed_scores(rows), grid or Grid({}, cells), hyperparameters, rows)


def reversed_grid(grid):
    """The same with every order turned round."""
    flipped = {key: dataclasses.replace(value, mean=100 - value.mean) for key, value in grid.values.items()}
    return dataclasses.replace(grid, values=flipped)


def rank(**ranks):
    """Accuracies by method alone, ten points apart."""
    return lambda method, *_: 50.0 + 10 * ranks[method.removeprefix("DP-")]


def test_every_claim_has_one_judge_and_no_function_is_left_over():
    assert judging("mehta2023") == found_in("mehta2023") and len(judges("mehta2023")) == 35


def test_a_claim_that_nothing_judges_is_named(monkeypatch):
    monkeypatch.setattr("dpstudy.tables.claims.judge.claims_of", lambda _: {"something-new": {"section": "1"}})
    with pytest.raises(StudyError, match="0 judges of the claim 'something-new'; .* the name something_new"):
        judges("mehta2023")
    twice = {"hessian-size": {"section": "1", "open": "nobody knows"}}
    monkeypatch.setattr("dpstudy.tables.claims.judge.claims_of", lambda _: twice)
    with pytest.raises(StudyError, match="2 judges of the claim 'hessian-size'"):
        judges("mehta2023")


def test_verdicts_on_the_printed_numbers_alone():
    found = [(row["section"], finding.verdict, finding.decided_by) for row, finding in judge("mehta2023", evidence())]
    wrong = [section for section, verdict, _ in found if verdict == FAILS]
    assert wrong == ["Abstract; 1; 2.4", "Abstract", "Table 1 (caption)", "Table 2 (caption)", "B.1"]
    held = [(section, by) for section, verdict, by in found if verdict == HOLDS]
    assert held == [
        ("Table 1", PRINTED),
        ("Table 1 vs Table 2", PRINTED),
        ("Table 1 (caption)", PRINTED),
        ("Table 1 (header); 2; 3", PRINTED),
        ("2.2", COMPUTED),
        ("2.2, Theorem 2.1", COMPUTED),
        ("2.3, Theorem 2.2", COMPUTED),
        ("2.4, Theorem 2.3", COMPUTED),
        ("2.2-2.3", COMPUTED),
        ("3.1", PRINTED),
        ("3.1", PRINTED),
        ("Table 2 (caption)", PRINTED),
        ("Table 3 (caption)", PRINTED),
        ("Table 4 (caption)", PRINTED),
        ("Tables 2-4", PRINTED),
        ("3; Tables 6-9 (captions)", PRINTED),
        ("Tables 6-9", PRINTED),
        ("C.2; Table 5", PRINTED),
    ]
    assert all(by == "" for _, verdict, by in found if verdict == OPEN)


def test_counts_of_the_printed_numbers():
    """Counted by hand from Tables 2-4."""
    printed = evidence()
    assert "63 of 64 for, 1 ties, 0 against" in JUDGES["covariance-over-newton"](printed).printed
    assert "64 of 64 for" in JUDGES["ten-steps-over-hundred"](printed).printed
    assert "0 of 16 for, 1 ties, 15 against" in JUDGES["newton-when-loose"](printed).printed
    assert "10 against (CIFAR-10/ImageNet-1k DP-Newton 10 ep. 2 to 4" in JUDGES["monotone"](printed).printed
    assert "3 against (ImageNet-1k/ImageNet-21k at 0.01" in JUDGES["imagenet-21k"](printed).printed
    assert "87.7 in Table 1, 87.8 in the detailed one" in accuracies.summary_differs_once(printed).printed
    gain = JUDGES["helps-more-when-strict"](printed).printed
    assert "7 of 8 for, 1 ties, 0 against" in gain and "−" not in gain


COMPARISONS = [
    (
        JUDGES["least-squares-when-private"],
        lambda m, t, e, p: 80 + 5 * ((m == "DP-LS") != math.isinf(e)),
    ),
    (JUDGES["least-squares-over-adam"], lambda m, t, e, p: 80 + (m == "DP-LS") * (5 if e < 1 else 1)),
    (
        JUDGES["newton-when-loose"],
        lambda m, t, e, p: 80 + (m == "DP-Newton") * (3 if math.isinf(e) else 1 if e >= 4 else -2),
    ),
    (JUDGES["covariance-over-newton"], rank(LS=0, Newton=1, FC=2, Adam=0)),
    (JUDGES["ten-steps-over-hundred"], rank(LS=0, Newton=0, FC=2, Adam=1)),
    (
        JUDGES["epochs-cost"],
        lambda m, t, e, p: 80 + (t if math.isinf(e) else -t) / 10 * (m == "DP-Adam"),
    ),
    (
        JUDGES["helps-more-when-strict"],
        lambda m, t, e, p: 50 + (p == "large") * (20 if e < 1 else 15 if e == 1 else 10),
    ),
    (JUDGES["grows-with-pretraining"], lambda m, t, e, p: 50 + 10 * (p == "large")),
    (JUDGES["monotone"], lambda m, t, e, p: 50 + min(e, 20)),
    (JUDGES["cifar10"], lambda m, t, e, p: 50 + 10 * ((m, t) == ("DP-FC", 10))),
    (
        JUDGES["cifar100"],
        lambda m, t, e, p: 50 + 10 * (m == ("DP-LS" if e < 0.5 else "DP-FC")),
    ),
]


@pytest.mark.parametrize(("claim", "accuracy"), COMPARISONS, ids=[name_of(claim) for claim, _ in COMPARISONS])
def test_a_verdict_turns_when_our_cells_do(claim, accuracy):
    grid = ours(accuracy)
    found = claim(evidence(grid))
    assert (found.verdict, found.decided_by) == (HOLDS, CELLS), found
    turned = claim(evidence(reversed_grid(grid)))
    assert (turned.verdict, turned.decided_by) == (FAILS, CELLS), turned
    drowned = claim(evidence(ours(accuracy, error=50.0)))
    assert drowned.decided_by != CELLS and "undecided within the noise" in drowned.here
    single = claim(evidence(ours(accuracy, error=None)))
    assert single.decided_by != CELLS
    without = claim(evidence())
    assert without.decided_by != CELLS and without.here.startswith("No cells")


@pytest.mark.parametrize(
    ("claim", "pretraining"),
    [(JUDGES["imagenet-jft"], "JFT-3B"), (JUDGES["imagenet-21k"], "ImageNet-21k")],
    ids=["JFT-3B", "ImageNet-21k"],
)
def test_captions_are_decided_by_cells_on_the_same_data_and_features(claim, pretraining):
    def accuracy(method, epochs, epsilon, _):
        return (
            50
            + 10 * (method == ("DP-LS" if epsilon < 0.1 and pretraining == "JFT-3B" else "DP-FC"))
            + min(epochs, 10) / 10
        )

    grid = ours(accuracy, datasets=("ImageNet-1k",), order=(pretraining,))
    assert (claim(evidence(grid)).verdict, claim(evidence(grid)).decided_by) == (HOLDS, CELLS)
    assert claim(evidence(reversed_grid(grid))).verdict == FAILS
    elsewhere = ours(accuracy, datasets=("CIFAR-10",), order=(pretraining,))
    assert claim(evidence(elsewhere)).decided_by == PRINTED


def altered(table, dataset, method, epochs, epsilon, value, pretraining="JFT-3B"):
    """The rows of results.csv with one value changed."""
    wanted = (table, dataset, method, epochs, epsilon, pretraining)
    keys = ("table", "dataset", "method", "epochs", "epsilon", "pretraining")
    rows = [row | {"value": value} if tuple(row[key] for key in keys) == wanted else row for row in ROWS]
    assert rows != ROWS
    return rows


@pytest.mark.parametrize(
    ("claim", "change", "verdict"),
    [
        (accuracies.headline, ("2", "ImageNet-1k", "DP-FC", "10", "8", "87.9"), FAILS),
        (accuracies.beats_the_state_of_the_art, ("1", "CIFAR-10", "DP-FC", "10", "1", "96.6"), FAILS),
        (accuracies.summary_differs_once, ("1", "ImageNet-1k", "DP-FC", "10", "4", "87.8"), FAILS),
        (accuracies.summary_differs_once, ("1", "CIFAR-10", "DP-FC", "10", "4", "99.0"), FAILS),
        (accuracies.distance_to_the_best, ("2", "ImageNet-1k", "DP-Newton", "10", "inf", "89.9"), HOLDS),
        (accuracies.last_layer_is_close, ("2", "ImageNet-1k", "DP-Newton", "10", "inf", "88.4"), FAILS),
        (accuracies.private_is_close, ("2", "ImageNet-1k", "DP-FC", "10", "8", "87.9"), FAILS),
        (JUDGES["cifar10"], ("3", "CIFAR-10", "DP-FC", "10", "0.01", "97.5"), FAILS),
        (JUDGES["imagenet-jft"], ("2", "ImageNet-1k", "DP-Adam", "10", "8", "88.1"), FAILS),
    ],
    ids=lambda value: name_of(value) if callable(value) else value if isinstance(value, str) else "-".join(value),
)
def test_a_verdict_turns_when_a_printed_number_does(claim, change, verdict):
    before, after = claim(evidence()), claim(evidence(rows=altered(*change)))
    assert after.verdict == verdict != before.verdict


def test_a_caption_that_would_hold_if_printed_so():
    rows = ROWS
    for epsilon in ("0.01", "0.05", "0.1"):
        changed = altered("2", "ImageNet-1k", "DP-FC", "1", epsilon, "70.0", "ImageNet-21k")
        rows = [new if new != old else row for new, old, row in zip(changed, ROWS, rows, strict=True)]
    assert JUDGES["imagenet-21k"](evidence(rows=rows)).verdict == HOLDS


def with_setting(parameter, value, **where):
    return [
        row | {"value": value} if row["parameter"] == parameter and where.items() <= row.items() else row
        for row in SETTINGS
    ]


@pytest.mark.parametrize(
    ("claim", "changed"),
    [
        (settings.clipping_norms, with_setting("clipping_norm", "1.0", table="7", dataset="CIFAR-10")),
        (settings.clipping_norms, with_setting("tuner_trials", "300", table="6")),
        (settings.initialisation, with_setting("init_bias", "0.0", table="9")),
        (settings.full_batch, with_setting("batch_size", "4096", table="6")),
        (accuracies.decay_given_twice, with_setting("weight_decay", "0.1")),
    ],
)
def test_a_verdict_turns_when_a_printed_setting_does(claim, changed):
    assert changed != SETTINGS
    assert claim(evidence()).verdict == HOLDS and claim(evidence(hyperparameters=changed)).verdict == FAILS


def cell(method, epochs, epsilon, events, hyperparameters):
    documents = {"hyperparameters": hyperparameters}, {"events": events}
    return Run("CIFAR-10", method, "entry", epsilon, 50_000, Value(50.0), *documents, epochs=epochs)


def run(method, epochs, epsilon="1", count=None, sampling="none", **hyperparameters):
    event = {"name": "gradient", "count": count or epochs, "sampling": sampling}
    return cell(method, epochs, float(epsilon), [event], hyperparameters)


def test_settings_are_decided_by_our_cells():
    def verdict(claim, *cells):
        found = claim(evidence(cells=cells))
        return found.verdict, found.decided_by

    full = run("DP-Adam", 10)
    assert verdict(settings.full_batch, full) == (HOLDS, CELLS)
    assert verdict(settings.full_batch, full, run("DP-FC", 10, count=9)) == (FAILS, CELLS)
    assert verdict(settings.full_batch, run("DP-FC", 10, sampling="poisson")) == (FAILS, CELLS)
    assert verdict(settings.initialisation, run("DP-Adam", 1, loss="sigmoid", bias=-10)) == (HOLDS, CELLS)
    assert verdict(settings.initialisation, run("DP-FC", 1, variant="published")) == (HOLDS, CELLS)
    assert verdict(settings.initialisation, run("DP-FC", 1, variant="improved")) == (FAILS, CELLS)
    assert verdict(settings.initialisation, run("DP-Adam", 1, loss="sigmoid", bias="learned")) == (FAILS, CELLS)
    free = cell("DP-LS", 1, math.inf, [], {})
    assert "1 of 1 cells" in settings.deltas(evidence(cells=[free])).here
    assert verdict(settings.deltas, run("DP-Adam", 1, "inf"))[0] == FAILS


def test_a_printed_delta_of_another_size():
    rows = [row | {"delta": "1e-6"} if (row["table"], row["epsilon"]) == ("3", "1") else row for row in ROWS]
    assert settings.deltas(evidence(rows=rows)).verdict == FAILS


@pytest.mark.parametrize(
    ("left", "right", "sign"),
    [
        (Value(90.0, 0.3), Value(89.0, 0.4), 0),  # 1.0 <= 2 * 0.5
        (Value(90.1, 0.3), Value(89.0, 0.4), 1),
        (Value(89.0, 0.4), Value(90.1, 0.3), -1),
        (Value(90.0), Value(90.0), 0),
        (Value(90.0), Value(89.9), 1),
        (Value(98.2 - 98.1), Value(0.1), 0),  # arithmetic is not a difference
        (Value(90.0, None), Value(10.0), 0),  # one seed
        (Value(22.1), Value(None, None, 20.0), 1),
        (Value(None, None, 20.0), Value(22.1), -1),
        (Value(19.0, 0.1), Value(None, None, 20.0), None),
        (Value(None, None, 20.0), Value(None, None, 20.0), None),
        (None, Value(1.0), None),
    ],
)
def test_when_a_difference_counts(left, right, sign):
    assert compare(left, right) == sign


def test_there_is_no_best_of_several_methods_where_one_was_not_run():
    place = Place("CIFAR-10", "Lite1")
    values = {(place, ("DP-Adam", 10), 1.0): Value(70.0), (place, ("DP-Adam", 100), 1.0): Value(80.0)}
    assert Grid(values).best_of(place, 1.0, ["DP-Adam"]).mean == 80.0
    assert Grid(values).best_of(place, 1.0, ["DP-Newton", "DP-Adam"]) is None
    both = values | {(place, ("DP-Newton", 1), 1.0): Value(75.0)}
    assert Grid(both).best_of(place, 1.0, ["DP-Newton", "DP-Adam"]).mean == 80.0


def test_no_difference_is_formed_with_a_bound():
    assert Value(22.1) - Value(None, None, 20.0) is None
    part = Part.of("a over b", [("x", Value(30.0), Value(None, None, 20.0)), ("y", Value(30.0), Value(28.0))])
    assert (part.wins, [value.mean for value in part.differences]) == (2, [2.0])
    assert average([None, Value(None, None, 20.0)]) is None
    assert average([Value(1.0, 0.3), Value(3.0, 0.4)]) == Value(2.0, 0.25)


@pytest.mark.parametrize(
    ("difference", "error", "counts"),
    [
        (-0.5, 0.1, (1, 0, 0)),  # within a point, which would be seen
        (-0.9, 0.4, (1, 0, 0)),
        (-0.5, 0.6, (0, 1, 0)),  # two standard errors, 1.2, could hide a point
        (5.0, 0.6, (1, 0, 0)),  # but not six
        (-1.2, 0.4, (0, 1, 0)),  # further below, not beyond chance
        (-2.0, 0.4, (0, 0, 1)),
        (-0.5, None, (0, 1, 0)),
    ],
)
def test_what_noise_would_hide_is_no_support(difference, error, counts):
    part = Part.of("no more than 1 point below", [("x", Value(80.0 + difference, error), Value(80.0))], margin=1.0)
    assert (part.wins, part.ties, len(part.losses)) == counts


def test_one_contradiction_in_ten_is_tolerated():
    def verdict(wins, ties, losses):
        return Part("", wins, ties, ["x"] * losses).verdict

    assert [verdict(9, 0, 1), verdict(8, 0, 2), verdict(1, 9, 0), verdict(2, 8, 0), verdict(0, 0, 0)] == [
        HOLDS,
        FAILS,
        OPEN,
        HOLDS,
        OPEN,
    ]


@pytest.mark.parametrize(("gain", "without", "verdict"), [(3.0, 3.0, HOLDS), (0.5, 3.0, FAILS), (3.0, 0.5, FAILS)])
def test_resolution_makes_a_big_difference_with_privacy_and_without(gain, without, verdict):
    def accuracy(method, epochs, epsilon, label):
        return 50.0 + ORDER.index(label) * (without if math.isinf(epsilon) else gain)

    sizes = [ours(accuracy)]
    found = settings.resolution(dataclasses.replace(evidence(), resolutions=sizes))
    assert (found.verdict, found.decided_by) == (verdict, CELLS)
    elsewhere = [ours(accuracy, datasets=("ImageNet-1k",))]
    for others in ([], elsewhere):
        assert settings.resolution(dataclasses.replace(evidence(), resolutions=others)).verdict == OPEN
