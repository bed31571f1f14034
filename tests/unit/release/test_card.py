"""The model card of a bundle: what it may say, and whose words it uses for the guarantee."""

import re

import pytest
import yaml

from dpstudy.core.files import read_json, write_json
from dpstudy.privacy.audit import ELSEWHERE
from dpstudy.release.bundle import write_bundle
from dpstudy.release.card import Trained, card, trained
from dpstudy.release.statement import statement
from tests.unit.release.test_bundle import contents, origin_of, train

FACTS = {
    "name": "toy/cnn/ls/eps=4",
    "classes": ["a", "b"],
    "multi_label": False,
    "image": {"size": [12, 10], "channels": 1, "crop": True},
    "features": {"extractor": "backbone", "backbone": "cnn", "fit": "pca", "normalise": "l2"},
}
SECTIONS = [
    "Intended use and limits",
    "Training data",
    "Preprocessing",
    "How to use",
    "Evaluation",
    "Privacy",
    "Provenance",
]
NO_SCORES = Trained("least_squares", "aa", "bb", {"numpy": "2.4.6"}, None)


@pytest.fixture(scope="module")
def cell(tmp_path_factory):
    """Two seeds, of which the first one's model is released; secure noise could give both the same score."""
    folder = train(tmp_path_factory.mktemp("cell"), {"method": "least_squares"}, 1, seeds=[0, 1])
    metrics = read_json(folder / "metrics.json")
    for row, score in zip(metrics["seeds"], (41.25, 57.75), strict=True):
        row["top1"] = score
    write_json(folder / "metrics.json", metrics | {"mean": {"top1": 49.5}})
    return folder


@pytest.fixture(scope="module")
def ledger(cell):
    return read_json(cell / "ledger.json")


def bundle(cell, folder, **changes):
    write_bundle("toy/pixels/ls/eps=4", origin_of(cell, **changes), [], str(folder))
    return (folder / "README.md").read_text(encoding="utf-8")


def head(text):
    return yaml.safe_load(text.split("---\n")[1])


def section(text, title):
    return re.search(rf"^## {title}\n\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)[1]


def test_the_layout_is_that_of_a_model_card(cell, tmp_path):
    text = bundle(cell, tmp_path / "bundle")
    assert text.startswith("---\n# license: to be filled in by the owner")
    assert head(text) == {
        "library_name": "dpstudy",
        "pipeline_tag": "image-classification",
        "tags": ["differential-privacy"],
    }
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == SECTIONS
    assert "# toy/pixels/ls/eps=4\n" in text and "3 classes, of which an image has one: `a`, `b`, `c`." in text
    assert "12 x 12 pixels with 1 channel, by stretching" in text and "python predict.py" in section(text, "How to use")


def test_scores_on_private_test_records_are_not_given(cell, tmp_path):
    """Unless somebody says that the test split is public, it is not."""
    text = bundle(cell, tmp_path / "bundle")
    assert section(text, "Evaluation").startswith("No score is given: the test split holds private records")
    first = read_json(cell / "metrics.json")["seeds"][0]
    assert "accuracy" not in text and f"{first['top1']:.4g}" not in text


def test_scores_are_of_the_model_that_is_released_alone(cell, tmp_path):
    metrics = read_json(cell / "metrics.json")
    text = bundle(cell, tmp_path / "bundle", test_public=True)
    assert head(text)["metrics"] == ["accuracy"]
    assert f"| top-1 accuracy (%) | {metrics['seeds'][0]['top1']:.4g} |" in section(text, "Evaluation")
    for value in (metrics["mean"]["top1"], metrics["seeds"][1]["top1"]):
        assert f" {value:.4g} " not in text


def test_the_guarantee_is_in_the_words_of_the_statement(cell, tmp_path, ledger):
    text = bundle(cell, tmp_path / "bundle", test_public=True)
    said = [line for line in section(text, "Privacy").splitlines() if line.startswith("- ")]
    told = (tmp_path / "bundle" / "PRIVACY.md").read_text(encoding="utf-8").splitlines()
    assert [line[:13] for line in said] == ["- **Who is pr", "- **The promi"] and set(said) <= set(told)
    for name in SECTIONS:
        words = section(text, name) if name != "Privacy" else ""
        assert not re.search(r"ε|δ|epsilon|delta|guarantee|protect", words), name
    assert f"(n = {ledger['n']})" in section(text, "Training data")


def test_attacks_that_say_nothing_of_the_cell_are_no_attack_on_it(ledger):
    entry = {"statistic": ELSEWHERE + "another reading", "epsilon_lower": 3.0, "runs": 10}
    audit = {"audits": [entry], "verdict": "Nothing is claimed."}
    assert "This cell was not attacked." in statement(ledger, "toy", {"pld": 4.0}, audit)
    entry["statistic"] = "a likelihood ratio"
    assert "at least 3.00 (10 runs" in statement(ledger, "toy", {"pld": 4.0}, audit)


def test_what_made_it_is_named_but_not_what_is_computed_from_records(cell, tmp_path):
    metrics = read_json(cell / "metrics.json")
    made_by = metrics["made_by"]
    text = bundle(cell, tmp_path / "bundle", test_public=True)
    assert made_by["config"] in text and made_by["library"] in text and f"numpy {made_by['versions']['numpy']}" in text
    assert made_by["data"] and not [value for value in made_by["data"].values() if value in text]


def test_a_card_is_the_same_bytes_each_time(cell, tmp_path):
    for name in ("first", "second"):
        bundle(cell, tmp_path / name, test_public=True)
    assert contents(tmp_path / "first") == contents(tmp_path / "second")


def test_public_parts_labels_and_strange_names(ledger):
    facts = FACTS | {"multi_label": True, "classes": ["a`b", "c\n## d"]}
    text = card(ledger, facts, NO_SCORES)
    assert "2 labels, of which an image may have several: `a'b`, `c ## d`." in text
    assert "`backbone/` is a network" in text and "`fit/` is a projection" in text and "12 x 10 pixels" in text
    assert "by cutting out the middle" in text and "`image` and a score for each label" in text
    many = card(ledger, FACTS | {"classes": [f"c{number}" for number in range(1000)]}, NO_SCORES)
    assert "1000 classes, of which an image has one: named in `bundle.json`." in many and "c999" not in many


def test_intervals_stand_beside_scores(ledger):
    scores = {"top1": (91.234567, (89.1, 93.0)), "auc": (0.87654321, None)}
    text = card(ledger, FACTS, Trained("newton", "aa", "bb", {}, scores))
    assert "| top-1 accuracy (%) | 91.23 | 89.10–93.00 |" in text
    assert "| area under the ROC curve | 0.8765 |  |" in text and head(text)["metrics"] == ["accuracy", "roc_auc"]


@pytest.mark.parametrize(("noise", "more", "source", "remedy"), [
    (0.01, {}, "noisy counts of the training records", "--prevalence CLASS=SHARE` corrects"),
    (0.3, {}, "noisy counts of the training records", "noise hides how common each class was"),
    (0.0, {"on": "test"}, "public test records", "--prevalence CLASS=SHARE` corrects"),
])  # fmt: skip
def test_what_probabilities_rest_on_is_said(cell, ledger, noise, more, source, remedy):
    metrics = read_json(cell / "metrics.json")
    told = {"slope": 1.0, "offsets": [0.0, 0.0], "shares": [0.8, 0.2], "noise": noise} | more
    metrics["seeds"][0]["calibration"] = told
    use = section(card(ledger, FACTS, trained(metrics, True)), "Intended use and limits")
    assert f"Probabilities are calibrated, on {source}" in use and remedy in use
    assert "no probabilities" in section(card(ledger, FACTS, NO_SCORES), "Intended use and limits")
