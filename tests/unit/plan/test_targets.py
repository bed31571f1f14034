"""What a study makes, and what its tables are told of its names."""

import pytest

from dpstudy.config.cells import Cell, unfold
from dpstudy.plan import paths, targets
from tests.unit.plan.conftest import study_with


def test_a_study_is_asked_for_all_that_the_contract_has():
    study = study_with(
        tables={"t": {"dataset": "own"}},
        figures={"f": {"dataset": "own"}},
        audit={"entries": ["ls"], "epsilons": ["1"]},
    )
    wanted = targets.final_targets(study)
    assert {"results/tables/t.tex", "results/tables/t.csv", "results/summary.csv", "results/summary.parquet"} <= {
        *wanted
    }
    assert {f"results/figures/f.{kind}" for kind in ("pdf", "png", "csv", "svg")} <= {*wanted}
    assert {"results/privacy/total.json", "results/report/index.html"} <= {*wanted}
    assert "results/privacy/certificates/own.json" in wanted
    assert "results/audit/own/pixels/ls/eps=1/audit.json" in wanted
    assert len(set(wanted)) == len(wanted)


def test_claims_are_always_attacked_and_others_where_they_are_named():
    study = study_with(audit={"entries": ["sgd"]})
    attacked = {path.split("/")[2] for path in targets.audits(study)}
    assert attacked == {"smoothing", "sgd"}
    assert not any(path.endswith("eps=inf") for path in targets.audits(study) if "/sgd/" in path), "nothing to attack"
    assert any(path.endswith("smoothing/eps=inf") for path in targets.audits(study_with()))
    cell = Cell("own", "pixels", "sgd", "1")
    assert targets.audit_of(study, cell) == ["results/audit/own/pixels/sgd/eps=1/audit.json"]
    assert targets.audit_of(study_with(), cell) == []


def test_files_of_cells_stand_in_the_studys_order(study):
    files = targets.cell_files(study, paths.METRICS)
    assert files == [f"results/cells/{cell.path}/metrics.json" for cell in unfold(study)]


def test_scores_that_are_not_kept_are_judged_before_they_go(study):
    net, ls = Cell("own", "images", "net", "1"), Cell("own", "pixels", "ls", "1")
    assert targets.score_files(study, net) == [f"results/runs/{net.path}/seed={seed}/scores.parquet" for seed in (0, 1)]
    assert targets.score_files(study, ls) == [f"results/cells/{ls.path}/scores.parquet"]
    assert targets.facts_of_runs(study) == paths.RUN
    assert targets.facts_of_runs(study_with(evaluation={"keep_scores": False})) == paths.METRICS
    assert len(targets.seed_files(study, net)) == 8 and len(targets.seed_folders(study, net)) == 2


def test_tables_are_told_what_must_be_marked():
    study = study_with(
        datasets__mine={"reader": "idx", "location": "m", "delta": "1e-4", "test_split": "private", "splits": {}},
        methods__tuned={
            "method": "least_squares",
            "tuning": {"trials": 2, "space": {"ridge": {"low": 0.1, "high": 10.0}}},
        },
        cells=[{"datasets": ["own"]}],
    )
    axes = targets.axes(study)
    assert axes["claimed"] == ["smoothing"] and axes["searched"] == ["tuned"] and axes["private_tests"] == ["mine"]
    assert axes["entries"] == list(study["methods"]) and axes["epsilons"] == ["1", "inf"]


def test_times_of_a_secret_number_of_repeats_are_not_shown(study):
    assert targets.shown_benchmarks(study) == paths.BENCHMARKS
    tuning = {"trials": 2, "pay": "repeats", "sampler": "random", "space": {"learning_rate": {"low": 0.1, "high": 1.0}}}
    secret = study_with(methods__sgd__tuning=tuning)
    assert targets.shown_benchmarks(secret) is None


@pytest.mark.parametrize("public", [True, False])
def test_how_many_records_matched_reaches_only_a_page_that_is_not_for_publication(public):
    """One whose test records are private."""
    study = study_with(datasets__own__test_split="public" if public else "private")
    assert list(targets.deduplicated(study)) and targets.public_tests(study)["own"] == public
    expected = [] if public else [paths.DEDUP_REPORT.format(public=name) for name in targets.deduplicated(study)]
    assert targets.counts_of_duplicates(study) == expected


@pytest.mark.parametrize("public", [True, False])
def test_so_does_how_many_images_cannot_be_read(public):
    own = {"reader": "imagenet", "location": "here", "size": [32, 32], "channels": 3, "delta": "1e-5"}
    own["test_split"] = "public" if public else "private"
    manifests = [paths.DATA_MANIFEST.format(source="own", split=split) for split in ("train", "test")]
    expected = [] if public else manifests
    assert targets.manifests_with_holes(study_with(datasets__own=own | {"unreadable": 0.1})) == expected
    assert targets.manifests_with_holes(study_with(datasets__own=own)) == []


def test_what_is_totalled_is_every_cell(study):
    cells = targets.totalled_cells(study)
    assert [one["name"] for one in cells] == [cell.path for cell in unfold(study)]
    assert {one["dataset"] for one in cells} == {"own"}
    assert targets.deltas(study) == {"own": "1e-5"}


def test_lasting_files_cover_each_kind_that_stays(study, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in ("tuning/own/pixels/ls/eps=1/trials.parquet", "release/own/pixels/ls/eps=1/x", "claims/p.json"):
        (tmp_path / "results" / path).parent.mkdir(parents=True)
        (tmp_path / "results" / path).touch()
    lasting = targets.lasting_files(study)
    assert {"results/tuning/own/pixels/ls/eps=1/trials.parquet", "results/claims/p.json"} <= {*lasting}
    assert "results/release/own/pixels/ls/eps=1" in lasting
    assert {"results/data/web/train/manifest.json", "results/backbones/cnn/card.json"} <= {*lasting}
    assert {"results/fits/pca/card.json", "results/dedup/web/report.json"} <= {*lasting}
    assert "results/features/own/cnn/test/part-00001.parquet" in lasting
    assert not any(path.startswith("results/features/own/images") for path in lasting)
