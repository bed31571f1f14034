"""Settings that change what a ledger may say, through the real workflow."""

import copy
import json
import shutil

import pytest

from dpstudy.evaluation.on_training import UNPAID
from tests.workflow.conftest import TINY, StudyFolder

ITERATED = {
    "method": "iterated_sgd",
    "learning_rate": 1.0,
    "clipping_norm": 1.0,
    "batch_size": 64,
    "epochs": 2,
    "protected_share": 0.9,
}
NOISE_FIGURE = {
    "style": "noise",
    "x": "epsilon",
    "noise": {
        "delta": "1e-5",
        "epochs": 2,
        "records": 100,
        "series": [{"algorithm": "iteration", "epsilons": ["1", "2"], "batch_sizes": [10]}],
    },
}


@pytest.fixture(scope="module")
def ledgers(finished, tmp_path_factory):
    """Ledgers of one study with secure noise, public images dropped, a paper's accounting, a clip-only entry, and
    accuracies on training records."""
    folder = StudyFolder(tmp_path_factory.mktemp("variants") / "study")
    shutil.copytree(finished.path, folder.path, copy_function=shutil.copy2)
    config = copy.deepcopy(TINY)
    config |= {"noise": "secure", "dedup": {"drop": "public", "method": "squares"}}
    config |= {"evaluation": {"metrics": ["top1", "train_top1"]}}
    config["methods"]["as-printed"] = {"method": "least_squares", "variant": "published", "accounting": "mehta2023"}
    config["methods"]["iterated"] = ITERATED
    config["figures"]["noise"] = NOISE_FIGURE
    config["methods"]["clipped"] = config["methods"]["sgd"] | {"sanitise": "clip"}
    folder.write_config(config)
    result = folder.snakemake()
    assert result.returncode == 0, result.stdout + result.stderr

    def read(cell: str) -> dict:
        return json.loads(folder.read(f"cells/digits/{cell}/ledger.json"))

    return folder, read


def test_secure_noise_is_said_and_not_called_seeded(ledgers):
    ledger = ledgers[1]("pixels/ls/eps=1")
    assert ledger["noise"] == "secure"
    assert ledger["guarantee"] == "proved"
    assert ledger["not_accounted"] == [UNPAID]


@pytest.mark.parametrize("entry", ["ls", "sgd"])
def test_training_records_are_scored_where_that_is_asked_for(ledgers, entry):
    metrics = json.loads(ledgers[0].read(f"cells/digits/pixels/{entry}/eps=inf/metrics.json"))
    assert all(row["top1"] != row["train_top1"] > 20 for row in metrics["seeds"])
    assert f"digits,pixels,{entry},".encode() in ledgers[0].read("summary.csv")
    assert ledgers[0].read("summary.csv").count(b",train_top1,") == ledgers[0].read("summary.csv").count(b",top1,")


def test_dropping_public_images_is_named_where_the_backbone_is_used(ledgers):
    assert any("drop: public" in sentence for sentence in ledgers[1]("cnn/ls/eps=1")["not_accounted"])
    assert not any("drop: public" in sentence for sentence in ledgers[1]("pixels/ls/eps=1")["not_accounted"])


def test_a_papers_accounting_calibrates_but_does_not_certify(ledgers):
    ledger = ledgers[1]("pixels/as-printed/eps=1")
    assert ledger["target_epsilon"] == "1"
    assert ledger["epsilon_by"]["zcdp"] == pytest.approx(1.0, rel=1e-3)  # rho + 2 sqrt(rho ln 1/delta)
    assert 0.6 < ledger["epsilon"] < 0.9  # what that noise is worth
    assert [event["noise_multiplier"] for event in ledger["events"]] == [ledger["events"][0]["noise_multiplier"]] * 3


def test_only_some_records_have_the_target_of_an_uneven_guarantee(ledgers):
    folder, read = ledgers
    ledger = read("pixels/iterated/eps=1")
    assert ledger["guarantee"] == "proved" and ledger["epsilon"] > 1.2
    assert any("have epsilon at most 1;" in sentence for sentence in ledger["not_accounted"])
    assert not (folder.path / "results/cells/digits/pixels/iterated/eps=1/curve.parquet").exists()
    assert b"iteration,certified,1," in folder.read("figures/noise.csv")


def test_clipping_without_noise_has_no_guarantee_and_runs_at_infinity_only(ledgers):
    folder, read = ledgers
    ledger = read("pixels/clipped/eps=inf")
    assert ledger["guarantee"] == "none" and ledger["epsilon"] is None and ledger["events"] == []
    assert not (folder.path / "results/cells/digits/pixels/clipped/eps=1").exists()


def test_the_total_of_a_study_with_open_cells_is_unbounded(ledgers):
    total = json.loads(ledgers[0].read("privacy/total.json"))["datasets"]["digits"]
    assert total["epsilon"] is None
    assert total["epsilon_of_proved"] > 1
    assert total["unbounded"] > 0
