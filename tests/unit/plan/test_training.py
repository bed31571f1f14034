"""What cells read and are told: no test record is learned from, and each cell says what it does outside its ledger."""

from dataclasses import asdict, fields
from types import SimpleNamespace

import pytest

from dpstudy.cell.inputs import CellInputs, CellRequest
from dpstudy.config.cells import Cell, unfold
from dpstudy.config.locations import books_of, folders_looked_at, folders_of
from dpstudy.evaluation.on_training import UNPAID
from dpstudy.plan import sources, training
from dpstudy.plan.code import cell_hash
from dpstudy.privacy.spending import BOOK
from tests.unit.plan.conftest import study_with

LS, SGD, NET = (Cell("own", "pixels", "ls", "1"), Cell("own", "pixels", "sgd", "1"), Cell("own", "images", "net", "1"))
TUNED = {"method": "least_squares", "tuning": {"trials": 2, "space": {"ridge": {"low": 0.1, "high": 10.0}}}}


def paid(retrain: bool, pay: str = "choice") -> dict:
    tuning = {"trials": 2, "pay": pay, "retrain": retrain, "sampler": "random", "space": TUNED["tuning"]["space"]}
    return study_with(methods__ls={"method": "least_squares", "tuning": tuning})


def folder(split: str, features: str = "pixels") -> str:
    return f"results/features/own/{features}/{split}"


def splits_in(files: list[str]) -> set[str]:
    return {split for split in ("train", "validation", "test") for path in files if f"/{split}/" in path}


@pytest.mark.parametrize("cell", unfold(study_with()), ids=lambda cell: cell.path)
def test_no_cell_search_or_attack_learns_from_test_records(study, cell):
    for learned in (
        training.training_files,
        training.searching_files,
        training.attacked_files,
        training.training_manifests,
    ):
        assert "test" not in splits_in(learned(study, cell)), learned.__name__
    for inputs in (training.inputs_of, training.search_inputs, training.audit_inputs, training.black_box_inputs):
        assert not any(one.endswith("/test") for one in inputs(study, cell)["train"]), inputs.__name__
    assert training.search_inputs(study, cell)["held_out"].endswith("/validation"), "a search never sees the test split"
    assert splits_in(training.test_files(study, cell)) == {"test"}


def test_a_cell_learns_from_what_it_is_told_and_declares(study):
    """Each folder of its inputs has its manifest and shards among the declared files."""
    for cell in (SGD, NET):
        files, inputs = training.training_files(study, cell), training.inputs_of(study, cell)
        folders = [*inputs["train"]]
        assert len(folders) == 2 and inputs["statistics"] == []
        assert files == [
            f"{one}/{name}" for one in folders for name in ("manifest.json", "part-00000.parquet", "part-00001.parquet")
        ]
    assert training.inputs_of(study, NET)["train"] == ["results/data/own/train", "results/data/own/validation"]


def test_sums_replace_features_and_only_manifests_are_read_beside(study):
    files, inputs = training.training_files(study, LS), training.inputs_of(study, LS)
    assert inputs["statistics"] == [path for path in files if "/private/statistics/" in path]
    assert [path for path in files if path not in inputs["statistics"]] == [
        f"{folder(split)}/manifest.json" for split in ("train", "validation")
    ]


@pytest.mark.parametrize(
    ("change", "clip", "grams"),
    [
        ({}, "1.0", "shared"),
        ({"clipping_norm": 0.5}, "0.5", "shared"),
        ({"variant": "published"}, "1.0", "per-class"),
    ],
)
def test_sums_are_of_the_clipping_and_grams_of_a_cell(change, clip, grams):
    study = study_with(methods__ls={"method": "least_squares", "clipping_norm": 1.0} | change)
    path = training.sums_of(study, LS, "train")
    assert path == f"results/private/statistics/own/pixels/train/clip={clip}/{grams}.safetensors"
    unclipped = training.sums_of(study, Cell("own", "pixels", "ls", "inf"), "train")
    assert unclipped == f"results/private/statistics/own/pixels/train/clip=inf/{grams}.safetensors"


def test_what_learns_from_features_has_no_sums(study):
    assert training.sums_of(study, SGD, "train") is None


def test_a_cell_that_pays_learns_from_validation_records_only_where_it_trains_again():
    alone, again = paid(retrain=False), paid(retrain=True)
    assert training.learned_splits(alone, LS) == ["train"]
    assert training.learned_splits(again, LS) == ["train", "validation"]
    for study in (alone, again):
        assert training.inputs_of(study, LS)["validation"] == folder("validation")
        assert splits_in(training.choosing_files(study, LS)) == {"validation"}
        assert training.trials_of(study, LS) == [], "its training makes the search"


def test_an_unpaid_search_is_an_input_and_no_more():
    study = study_with(methods__ls=TUNED)
    assert training.trials_of(study, LS) == ["results/tuning/own/pixels/ls/eps=1/trials.parquet"]
    assert training.inputs_of(study, LS)["trials"] == "results/tuning/own/pixels/ls/eps=1/trials.parquet"
    assert training.choosing_files(study, LS) == [] and training.inputs_of(study, LS)["validation"] is None
    assert training.learned_splits(study, LS) == ["train", "validation"]


def test_what_is_done_outside_a_ledger_is_named():
    cell = Cell("own", "cnn", "sgd", "1")
    assert training.not_accounted(study_with(), cell) == []
    unmatched = study_with(public__web__matched=False)
    assert any("was not compared with the private records" in one for one in training.not_accounted(unmatched, cell))
    assert training.not_accounted(unmatched, SGD) == [], "pixels were made with nothing public"
    chosen = study_with(dedup={"drop": "public"})
    assert any("chosen by comparing them with private records" in one for one in training.not_accounted(chosen, cell))
    shown = study_with(evaluation={"metrics": ["top1", "train_top1"]})
    assert UNPAID in training.not_accounted(shown, SGD)
    told = study_with(methods__sgd__not_accounted=["A word of the author's."])
    assert training.not_accounted(told, SGD) == ["A word of the author's."]


def test_what_training_accuracy_is_told_of_is_read(study):
    shown = study_with(evaluation={"metrics": ["top1", "train_top1"]})
    assert training.is_scored_on_training(shown) and not training.is_scored_on_training(study)
    assert "results/features/own/pixels/train/part-00000.parquet" in training.training_files(shown, LS)


def test_a_request_has_all_that_makes_a_cell_stale_and_spending_none_of_it(study):
    request = training.training_request_of_all(study, SGD)
    named = {field.name for field in fields(CellRequest)} - {"code", "metrics"}
    untracked = vars(training.spending(study, SGD))
    assert request.keys() | untracked.keys() == named
    assert request.keys() & untracked.keys() == {"not_accounted"}, "sentences of both are said"
    assert request["library"] == cell_hash(study, SGD) and request["cell"] == asdict(SGD)
    assert isinstance(training.spending(study, SGD), SimpleNamespace), "what Snakemake does not compare"
    public = {"datasets__own__test_split": "public", "noise": "secure"}
    secure = study_with(**public, release={"budget": "3", "spend_again": True})
    assert vars(training.spending(secure, SGD)) == {
        "spent": BOOK,
        "shared": books_of(secure, ["own"]),
        "beside": folders_looked_at(secure, ["own"]),
        "spend_again": True,
        "ceiling": "3",
        "records": sources.record_names(secure, "own"),
        "folders": folders_of(secure, "own"),
        "others": False,
        "persons": "",
        "not_accounted": [],
    }
    assert training.training_request_of_all(secure, SGD) == training.training_request_of_all(
        study_with(**public), SGD
    ), "to allow spending is no other training"


def test_a_request_and_inputs_become_what_jobs_take(study):
    request = training.training_request_of_all(study, SGD)
    made = CellRequest.of(request, ["code.py"], SimpleNamespace(spent=BOOK, not_accounted=["Another."]))
    assert made.cell == SGD and list(made.not_accounted) == ["Another."] and made.spent == BOOK
    assert list(made.seeds) == [0, 1] and made.fingerprint
    inputs = CellInputs.of(training.inputs_of(study, SGD))
    assert inputs.train == (folder("train"), folder("validation")) and inputs.held_out == folder("test")


def test_a_seed_of_a_deep_entry_has_a_checkpoint_of_its_own(study):
    request = training.training_request_of_one(study, NET, "1")
    assert request["seeds"] == [1]
    assert request["checkpoint"] == "results/runs/own/images/net/eps=1/seed=1/checkpoint.safetensors"


def test_entries_are_told_apart_by_how_they_train(study):
    assert training.entries_where(study, curve=False) == ["ls"]
    assert training.entries_where(study, curve=True, per_seed=True) == ["net"]
    assert training.entries_where(study, curve=True, audited=True) == ["smoothing"]
    assert training.entries_where(study, curve=True, per_seed=False, audited=False) == ["sgd"]
    assert sorted(training.entries_of_audits(study)) == ["ls", "net", "sgd"], "all but what attacks its own claim"
