"""Labels of printed numbers, each by an example computed by hand."""

import csv
from dataclasses import replace

import pytest

from dpstudy.evidence.labels import LABELS, label, labels, reason
from dpstudy.evidence.measured import MEASURED
from dpstudy.evidence.printed import CERTIFIED, Place
from dpstudy.evidence.printed import PRINTED as PRINTED_NOISE
from dpstudy.tables.published import all_lines
from tests.unit.evidence.test_measured import ROW

PRINTED = dict.fromkeys(("paper", "table", "dataset", "pretraining", "model", "method", "source", "std"), "")
PRINTED |= {"value": "81.5", "epsilon": "0.1"}


def lines_of(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(
    ("change", "printed", "name", "text"),
    [
        # 81.0, from 80.8 to 81.2, against 81.5: 0.5 and 0.2 are within one point
        ({"mean": 81.0, "low": 80.8, "high": 81.2}, {}, "reproduced", "-0.5 ± 0.2 at the same certified ε, 3 seeds"),
        ({"mean": 81.0, "low": 80.8, "high": 81.2, "seeds": 2}, {}, "consistent", "-0.5 ± 0.2"),
        ({"mean": 81.0, "low": 80.8, "high": 81.2, "seeds": 1}, {}, "consistent", "1 seed"),
        # 0.5 and 0.6 are beyond one point, and not all of it is
        ({"mean": 81.0, "low": 80.4, "high": 81.6}, {}, "consistent", "-0.5 ± 0.6"),
        # a printed deviation of 0.3: 1.96 x 0.3 = 0.59 and 0.2 give 0.62
        ({"mean": 81.0, "low": 80.8, "high": 81.2}, {"std": "0.3"}, "consistent", "-0.5 ± 0.6"),
        # 83.0 from 82.6 to 83.4: 1.5 less 0.4 is beyond one point
        (
            {"mean": 83.0, "low": 82.6, "high": 83.4},
            {},
            "differs",
            "+1.5 ± 0.4 at the same certified ε, 3 seeds: unexp",
        ),
        ({"mean": 83.0, "low": None, "high": None}, {}, "consistent", "+1.5 ± inf"),
        # what certifies more than the printed 0.1, or nothing, is not at the same epsilon
        ({"certified": "0.2"}, {}, "consistent", "-0.2 ± 1.2 at a certified ε of 0.2, 3 seeds"),
        ({"certified": "", "guarantee": "claimed"}, {}, "consistent", "without a proved ε, 3 seeds"),
        ({"mean": 99.0}, {"source": "Bu et al."}, "cited", "a number of Bu et al."),
        ({"mean": 19.0}, {"value": ""}, "consistent", "printed as at most 20"),
        ({"mean": 21.0}, {"value": ""}, "differs", "printed as at most 20"),
        ({"kind": "stand-in", "what": "ViT-B/16"}, {}, "not comparable", "stand-in: ViT-B/16"),
    ],
)
def test_a_label_follows_from_the_interval_of_the_difference(change, printed, name, text):
    found = label(PRINTED | printed, [replace(ROW, **change)])
    assert found.name == name and text in found.text and (found.row is None) == (name == "cited")


def test_the_printed_noise_counts_before_the_certified_epsilon():
    places = [
        Place("s", "mnist", "pixels", entry, "0.1", "top1", noise)
        for entry, noise in (("ls", CERTIFIED), ("printed", PRINTED_NOISE))
    ]
    rows = [replace(ROW, mean=70.0, low=69.9, high=70.1), replace(ROW, entry="printed", mean=81.5, low=81.4, high=81.6)]
    (found,) = labels({7: PRINTED}, {7: places}, rows).values()
    assert found.name == "reproduced" and found.text == "+0.0 ± 0.1 at the printed noise, 3 seeds"
    (found,) = labels({7: PRINTED}, {7: places[:1]}, rows).values()
    assert found.name == "differs" and "at the same certified ε" in found.text


def test_every_printed_number_has_a_label_and_what_it_needs():
    """Even where nothing has been measured."""
    lines = all_lines()
    found = labels(lines, {}, [])
    assert len(found) == 873 and {label.name for label in found.values()} <= set(LABELS)
    assert all(label.text for label in found.values()), [lines[n] for n, label in found.items() if not label.text][:3]
    assert sum(label.name == "cited" for label in found.values()) == 39


def test_the_first_reason_that_fits_is_taken():
    jft = next(row for row in all_lines().values() if row["pretraining"] == "JFT-3B" and row["table"] == "2")
    assert reason(jft, "needs").startswith("JFT-3B") and reason(jft, "differs") == ""


def test_the_committed_labels_are_what_one_reckons_from_the_committed_numbers():
    """From the two files alone, with no code of the library's."""
    folder, docs = MEASURED.parent, MEASURED.parents[2] / "docs"
    key = ("study", "features", "entry", "epsilon", "metric")
    measured = {tuple(row[name] for name in key): row for row in lines_of(folder / "measured.csv")}
    printed = dict(enumerate(lines_of(folder / "results.csv"), start=2))
    reckoned = 0
    for row in lines_of(docs / "evidence.csv"):
        if row["label"] not in ("reproduced", "consistent", "differs") or not row["printed"]:
            continue
        of_line = printed[int(row["line"])]
        ours = measured[row["study"], row["features"], row["entry"], row["epsilon"], row["metric"]]
        assert ours["kind"] == "full" and ours["seeds"] == row["seeds"] and not of_line["source"]
        apart = abs(float(ours["mean"]) - float(of_line["value"]))
        half = (float(ours["high"]) - float(ours["low"])) / 2
        if of_line["std"]:
            half = (half**2 + (1.96 * float(of_line["std"])) ** 2) ** 0.5
        near, far = apart + half, apart - half
        expected = "reproduced" if near <= 1 and int(ours["seeds"]) >= 3 else "consistent" if far <= 1 else "differs"
        assert row["label"] == expected, row
        reckoned += 1
    assert reckoned >= 9
