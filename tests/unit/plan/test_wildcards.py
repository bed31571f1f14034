"""Wildcards take the names of the config, and nothing else."""

import re

from dpstudy.config.cells import Cell
from dpstudy.plan import wildcards
from tests.unit.plan.conftest import study_with


def test_names_of_the_config_match_whole_and_alone(study):
    known = wildcards.constraints(study)
    for wildcard, name in (
        ("dataset", "own"),
        ("source", "web"),
        ("features", "cnn"),
        ("entry", "sgd"),
        ("epsilon", "inf"),
    ):
        assert re.fullmatch(known[wildcard], name), wildcard
        assert not re.fullmatch(known[wildcard], f"{name}x"), wildcard
    assert re.fullmatch(known["seed"], "1") and not re.fullmatch(known["seed"], "2")
    assert re.fullmatch(known["shard"], "00012") and not re.fullmatch(known["shard"], "12")


def test_points_in_names_are_no_pattern():
    pattern = wildcards.constraints(study_with(epsilons=["0.5", "inf"]))["epsilon"]
    assert re.fullmatch(pattern, "0.5") and not re.fullmatch(pattern, "0x5")
    assert wildcards.finite(study_with(epsilons=["0.5", "inf"])) == r"0\.5"


def test_a_wildcard_without_values_matches_nothing(study):
    assert study["tables"] == {}
    assert not any(re.fullmatch(wildcards.constraints(study)["table"], text) for text in ("", "a", "tiny"))


def test_wildcards_name_a_cell():
    names = {"dataset": "own", "features": "cnn", "entry": "sgd", "epsilon": "1", "seed": "0"}
    assert wildcards.cell_of(names) == Cell("own", "cnn", "sgd", "1")
