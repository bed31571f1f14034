"""What cells must bear: another setting, record or file of code is seen, and nothing else is."""

from dataclasses import fields

import pytest

from dpstudy.cell.inputs import CellRequest
from dpstudy.config.cells import Cell
from dpstudy.methods import network_dpsgd
from dpstudy.plan import fingerprints
from dpstudy.plan.fingerprints import fingerprint_of, whole_fingerprint
from dpstudy.plan.training import training_request_of_one
from dpstudy.schema.methods import method_schema
from tests.unit.plan.conftest import study_with

SGD, CNN, NET = Cell("own", "pixels", "sgd", "1"), Cell("own", "cnn", "sgd", "1"), Cell("own", "images", "net", "1")


@pytest.mark.parametrize(
    "change",
    [
        {"methods__sgd__learning_rate": 3.0},
        {"methods__sgd__clipping_norm": 0.5},
        {"overrides": [{"match": {"entry": "sgd"}, "set": {"steps": 6}}]},
        {"datasets__own__delta": "1e-6"},
        {"datasets__own__splits": {"validation": 0.1}},
        {"datasets__own__positives": 2},
        {"features__cnn__normalise": "l2"},
        {"backbones__cnn__width": 16},
        {"public__web__count": 200},
        {"dedup": {"drop": "public"}},
        {"seeds": [0, 1, 2]},
        {"accounting": "tramer2021"},
        {"evaluation": {"metrics": ["top1", "train_top1"]}},
        {"noise": "secure", "datasets__own__test_split": "public"},
    ],
    ids=str,
)
def test_another_setting_is_another_cell(study, change):
    assert whole_fingerprint(study_with(**change), CNN) != whole_fingerprint(study, CNN)


@pytest.mark.parametrize(
    "change",
    [
        {"methods__ls__ridge": 0.5},
        {"tables": {"t": {"dataset": "own"}}},
        {"epsilons": ["1", "2", "inf"]},
        {"data_root": "elsewhere"},
        {"fits__pca__dim": 4},
        {"features__pixels__scaling": "symmetric"},
        {"evaluation": {"metrics": ["top1", "auc"]}},
        {"study": "another", "question": "Why?"},
        {"release": {"spend_again": True}},
    ],
    ids=str,
)
def test_what_a_cell_does_not_depend_on_changes_nothing(study, change):
    assert whole_fingerprint(study_with(**change), CNN) == whole_fingerprint(study, CNN)


def test_matching_counts_only_where_a_cell_is_made_with_what_is_matched(study):
    assert whole_fingerprint(study_with(dedup={"drop": "public"}), SGD) == whole_fingerprint(study, SGD)


def test_seeds_that_are_jobs_have_fingerprints_of_their_own(study):
    assert fingerprint_of(study, NET, [0]) != fingerprint_of(study, NET, [1])
    more = study_with(seeds=[0, 1, 2])
    assert fingerprint_of(more, NET, [0]) == fingerprint_of(study, NET, [0]), "a new seed leaves the others alone"
    assert [list(one.seeds) for one in fingerprints.trainings(study, NET)] == [[0], [1]]
    assert [list(one.seeds) for one in fingerprints.trainings(study, SGD)] == [[0, 1]]
    due = fingerprints.trainings(study, NET)[1]
    assert due.ledger == "results/runs/own/images/net/eps=1/seed=1/ledger.json"
    assert due.fingerprint == fingerprint_of(study, NET, [1])


def test_a_training_that_was_begun_is_known_again_whatever_memory_and_speed_it_takes(study):
    """By the same hash where a run is planned and where its job is done."""
    (due,) = fingerprints.trainings(study_with(seeds=[0]), NET)
    free = {"micro_batch": 4, "devices": 2, "compile": True, "checkpoint_minutes": 0, "checkpoint_steps": 9}
    assert set(free) == set(method_schema("network_dpsgd")["x-free-to-change"])
    for name, value in free.items():
        assert not {each.name: each for each in fields(network_dpsgd.Parameters)}[name].repr, "it keys no noise"
        (other,) = fingerprints.trainings(study_with(seeds=[0], **{f"methods__net__{name}": value}), NET)
        assert other.deciding == due.deciding and other.fingerprint != due.fingerprint
    (other,) = fingerprints.trainings(study_with(seeds=[0], methods__net__record_by_record=True), NET)
    assert other.deciding != due.deciding, "what ledgers leave out is another"
    request = CellRequest.of(training_request_of_one(study_with(seeds=[0]), NET, "0"), [])
    assert (request.deciding, request.fingerprint) == (due.deciding, due.fingerprint)


def test_every_file_that_a_cell_reads_vouches_for_it(study):
    assert fingerprints.data_of(study, SGD) == {
        split: f"results/features/own/pixels/{split}/manifest.json" for split in ("train", "validation", "test")
    }
    assert fingerprints.data_of(study, CNN)["kept-0"] == "results/dedup/web/kept.parquet"
    started = study_with(methods__net__start={"weights": "w.safetensors", "trained_on": "unmatched"})
    assert fingerprints.data_of(started, NET)["start"].endswith("w.safetensors")


def test_a_ledger_must_state_its_units_by_what_it_learned_from(study):
    stated = fingerprints.stated_of(study, SGD)
    assert stated["manifests"] == [
        f"results/features/own/pixels/{one}/manifest.json" for one in ("train", "validation")
    ]
    assert stated["epsilon"] == "1" and stated["noise"] == "seeded" and stated["dataset"]["delta"] == "1e-5"
    assert set(fingerprints.learned_manifests(study, "own")) >= set(stated["manifests"])


def test_every_cell_is_summarised_with_what_it_must_bear(study):
    cells = fingerprints.summarised_cells(study)
    assert [one["name"] for one in cells] == [cell.path for cell in fingerprints.cells_of(study, "own")]
    one = next(one for one in cells if one["name"] == CNN.path)
    assert one["expected"]["config"] == whole_fingerprint(study, CNN)
    assert one["expected"]["data"] == fingerprints.data_of(study, CNN)


def test_another_metric_is_another_evaluation_and_kept_scores_are_none(study):
    other = study_with(evaluation={"metrics": ["top1", "auc"]})
    assert fingerprints.evaluation_hash(other) != fingerprints.evaluation_hash(study)
    kept = study_with(evaluation={"keep_scores": not study["evaluation"]["keep_scores"]})
    assert fingerprints.evaluation_hash(kept) == fingerprints.evaluation_hash(study)


def test_each_entry_that_adds_noise_of_its_own_is_replayed_once():
    study = study_with(methods__shared={"method": "least_squares", "shared_noise": True}, epsilons=["1", "2", "inf"])
    cells = fingerprints.replayed_cells(study, "own")
    assert len({(cell.features, cell.entry) for cell in cells}) == len(cells)
    assert {cell.entry for cell in cells} == {"ls", "sgd", "net", "smoothing"}
    assert all(cell.epsilon == "1" for cell in cells)
    assert {one["folder"] for one in fingerprints.replays_of(study, "own")} == {
        path.removesuffix("/manifest.json") for path in fingerprints.layouts(study, "own")
    }


def test_certifying_is_told_of_each_cell_of_a_data_set(study):
    cells = fingerprints.certified_cells(study, "own")
    assert [one["name"] for one in cells] == [cell.path for cell in fingerprints.cells_of(study, "own")]
    assert all(one["stated"]["dataset"]["delta"] == "1e-5" for one in cells)
    assert all(one["unnamed"] is False for one in cells)
    mine = study_with(datasets__own__test_split="private")
    assert all(one["unnamed"] is True for one in fingerprints.certified_cells(mine, "own"))
