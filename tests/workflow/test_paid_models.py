"""What secure noise has paid for, in the real workflow: an update of the program, a removal or an edit by hand neither
loses it nor draws noise again."""

import copy
import json
import shutil
import subprocess

import pytest

from dpstudy.core.files import read_json, sha256
from tests.workflow.clinic import CONFIG
from tests.workflow.conftest import ROOT, copy_of, make_folder
from tests.workflow.test_seed_jobs import CELL, STUDY
from tests.workflow.test_status import status

LS, SGD = (f"clinic/pixels/{entry}/eps=2" for entry in ("least-squares", "dp-sgd"))
TABLE, BUNDLE = "results/tables/tiny.tex", f"results/release/{LS}"
METRICS = [f"results/cells/{cell}/metrics.json" for cell in (LS, SGD)]
MADE = ("model.safetensors", "scores.parquet", "ledger.json", "run.json")


@pytest.fixture
def clinic(finished_clinic, tmp_path):
    return copy_of(finished_clinic, tmp_path / "study")


def succeeds(result):
    assert result.returncode == 0, result.stdout + result.stderr
    return result


def paid(study, *cells):
    """Bytes of all that was paid for, and of the book."""
    files = [f"cells/{cell}/{name}" for cell in cells or (LS, SGD) for name in MADE]
    return {name: study.read(name) for name in ("privacy/spent.jsonl", *files)}


def update(study, kind="features"):
    """A library that writes the same records, with another manifest of shards, and trains otherwise in no way."""
    path = study.path / f"workflow/dpstudy/{kind}/shards.py"
    text, made = path.read_text(), "for key in _MANIFEST}"
    assert text.count(made) == 1
    path.write_text(text.replace(made, f"{made} | {{'version': 2}}"))


def as_an_earlier_version_left_it(study):
    shutil.rmtree(study.path / "results/privacy/paid")
    book = study.path / "results/privacy/spent.jsonl"
    lines = [json.loads(line) for line in book.read_text().splitlines()]
    ended = [line for line in lines if "files" in line]
    new = ("files", "config", "training")
    old = [{key: value for key, value in line.items() if key not in new} for line in ended]
    book.write_text("".join(json.dumps(line) + "\n" for line in old))


def log(study, cell, rule="train_closed_form"):
    return (study.path / f"results/logs/{rule}/{cell}.log").read_text()


def test_what_was_paid_for_is_kept_before_it_is_published(finished_clinic):
    store = finished_clinic.path / "results/privacy/paid"
    lines = [json.loads(line) for line in finished_clinic.read("privacy/spent.jsonl").splitlines()]
    assert {line["cell"] for line in lines} == {LS, SGD}
    for line in lines:
        (folder,) = (store / "cells" / line["cell"] / "seed=0").glob("[!.]*")
        assert {path.name: sha256(path) for path in folder.iterdir()} == line["files"]
        for name, digest in line["files"].items():
            output = finished_clinic.path / "results/cells" / line["cell"] / name
            assert sha256(output) == digest and output.stat().st_ino != (folder / name).stat().st_ino
            assert (folder / name).stat().st_mode & 0o777 == 0o600
    assert store.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("earlier", [False, True])
def test_after_an_update_of_the_program_paid_models_are_tabled_and_released_as_they_are(clinic, earlier):
    if earlier:
        as_an_earlier_version_left_it(clinic)
    before, library = paid(clinic), read_json(clinic.path / f"results/cells/{LS}/run.json")["made_by"]["library"]
    update(clinic)
    assert status(clinic).startswith("cells: 0 done, 0 stale, 0 missing, 2 kept\n")
    assert (clinic.path / "results/privacy/paid/cells").exists() != earlier, "who only asks moves nothing"
    succeeds(clinic.snakemake(TABLE, BUNDLE))
    assert paid(clinic) == before
    assert f"paid for already, and taken as it is from results/privacy/paid/cells/{LS}/" in log(clinic, LS)
    assert "trained in" not in log(clinic, LS) and "trained in" not in log(clinic, SGD, "train_stepped")
    made = read_json(clinic.path / METRICS[0])["made_by"]
    manifest = clinic.path / "results/features/clinic/pixels/train/manifest.json"
    assert read_json(manifest)["version"] == 2 and sha256(manifest)[:16] != made["data"]["train"]
    assert made["library"] == library and f"`{library}`" in (clinic.path / BUNDLE / "README.md").read_text()
    assert (clinic.path / BUNDLE / "model.safetensors").read_bytes() == before[f"cells/{LS}/model.safetensors"]
    assert status(clinic).startswith("cells: 2 done, 0 stale, 0 missing\n")
    if earlier:  # the same from here on
        return
    run = clinic.path / f"results/cells/{LS}/metrics.json"
    run.write_text(run.read_text().replace(library, "0" * 16))  # by neither library
    succeeds(clinic.snakemake("--touch", TABLE))
    (clinic.path / "results/summary.csv").unlink()
    refused = clinic.snakemake("results/summary.csv")
    assert refused.returncode and "stale, its library is not the present one" in refused.stderr


def test_a_changed_hyper_parameter_is_refused_alone_and_nothing_is_lost(clinic):
    as_an_earlier_version_left_it(clinic)
    before, config = paid(clinic), copy.deepcopy(CONFIG)
    update(clinic)
    config["methods"]["dp-sgd"]["steps"] = 6
    clinic.write_config(config)
    said = status(clinic)
    assert said.startswith("cells: 0 done, 1 stale, 0 missing, 1 kept\n")
    assert "1 of the cells were trained with secure noise, and will not be again" in said
    (clinic.path / METRICS[0]).unlink()
    first = ("--cores", "1", "--prioritize", f"results/cells/{SGD}/run.json", "--")  # the others go on after it
    refused = clinic.snakemake(*first, *METRICS)
    assert refused.returncode and "nothing was run" not in refused.stderr
    assert f"dpstudy: cell {SGD}: it was trained with secure noise on 20" in refused.stderr
    assert f"dpstudy: cell {LS}" not in refused.stderr and (clinic.path / METRICS[0]).exists()
    assert clinic.read("privacy/spent.jsonl") == before["privacy/spent.jsonl"]
    clinic.write_config(CONFIG)
    succeeds(clinic.snakemake(*METRICS))
    assert paid(clinic) == before


@pytest.mark.parametrize("what", ["image", "label"])
def test_of_other_records_nothing_is_taken_and_once_they_are_back_all_is(clinic, what):
    before, table = paid(clinic), clinic.path / "data/clinic/table.csv"
    update(clinic)
    if what == "image":
        other = clinic.path / "data/clinic/images/7.png"
        shutil.copy(other, clinic.path / "kept")
        shutil.copy(clinic.path / "data/clinic/images/8.png", other)
    else:
        other, first = table, table.read_text().splitlines()[1]
        shutil.copy(other, clinic.path / "kept")
        assert first.split(",")[1] == "a"
        table.write_text(table.read_text().replace(first, first.replace(",a,", ",b,")))
    refused = clinic.snakemake(*METRICS)
    assert refused.returncode and "nothing was run" not in refused.stderr
    for cell in (LS, SGD):
        assert f"dpstudy: cell {cell}: it was trained with secure noise, and what it learned from" in refused.stderr
    assert clinic.read("privacy/spent.jsonl") == before["privacy/spent.jsonl"]
    shutil.copy(clinic.path / "kept", other)
    succeeds(clinic.snakemake(*METRICS))
    assert paid(clinic) == before


def test_what_snakemake_is_told_to_make_again_and_what_was_removed_is_taken_from_the_store(clinic):
    before = paid(clinic)
    succeeds(clinic.snakemake("--forcerun", "train_closed_form", "train_stepped", "--", *METRICS))
    assert paid(clinic) == before and "taken as it is" in log(clinic, LS)
    shutil.rmtree(clinic.path / "results/cells")
    succeeds(clinic.snakemake(*METRICS))
    assert paid(clinic) == before
    shutil.copy(ROOT / "Makefile", clinic.path)
    subprocess.run(["make", "clean"], cwd=clinic.path, check=True)
    assert [path.name for path in (clinic.path / "results").iterdir()] == ["privacy"]
    succeeds(clinic.snakemake(*METRICS))
    assert paid(clinic) == before


def test_a_changed_file_of_the_store_is_mended_from_the_outputs_or_refused(clinic):
    before = paid(clinic)
    (model,) = (clinic.path / "results/privacy/paid/cells" / LS / "seed=0").glob("*/model.safetensors")
    shutil.copy(clinic.path / f"results/cells/{SGD}/model.safetensors", model)
    succeeds(clinic.snakemake("--forcerun", "train_closed_form", "--", *METRICS))
    assert paid(clinic) == before and model.read_bytes() == before[f"cells/{LS}/model.safetensors"]
    shutil.copy(clinic.path / f"results/cells/{SGD}/model.safetensors", model)
    shutil.rmtree(clinic.path / "results/cells")
    refused = clinic.snakemake(*METRICS)
    assert refused.returncode and f"{model.parent.relative_to(clinic.path)}: a file there is not as" in refused.stderr
    assert paid(clinic, SGD).items() <= before.items() and not (clinic.path / METRICS[0]).exists()


def test_outputs_that_the_book_does_not_know_are_no_paid_model(clinic):
    """Another cell's files, put by hand where those of an earlier version were."""
    as_an_earlier_version_left_it(clinic)
    ledger, others = (clinic.path / f"results/cells/{cell}/ledger.json" for cell in (LS, SGD))
    shutil.copy(others, ledger)
    refused = clinic.snakemake("--forcerun", "train_closed_form", "--", *METRICS)
    assert refused.returncode and f"nothing was run: cell {LS}: it was trained with secure noise" in refused.stderr
    assert ledger.read_bytes() == others.read_bytes()
    assert not list((clinic.path / "results/privacy/paid").rglob("model*"))


@pytest.fixture(scope="module")
def finished_seeds(tmp_path_factory):
    study = make_folder(tmp_path_factory.mktemp("deep") / "study")
    study.write_config(STUDY | {"noise": "secure"})
    succeeds(study.snakemake(f"results/cells/{CELL}/metrics.json"))
    return study


@pytest.mark.parametrize("earlier", [False, True])
def test_the_seeds_of_a_deep_cell_are_taken_each(finished_seeds, tmp_path, earlier):
    study = copy_of(finished_seeds, tmp_path / "study")
    if earlier:
        as_an_earlier_version_left_it(study)
    files = {f"runs/{CELL}/seed={seed}/{name}": b"" for seed in (0, 1) for name in (*MADE, "curve.parquet")}
    files |= {f"cells/{CELL}/{name}": b"" for name in ("model.safetensors", "ledger.json", "run.json")}
    files["privacy/spent.jsonl"] = b""
    before = {name: study.read(name) for name in files}
    update(study, "data")
    assert status(study).startswith("cells: 0 done, 0 stale, 0 missing, 1 kept\n")
    succeeds(study.snakemake("results/summary.csv"))
    assert {name: study.read(name) for name in files} == before
    assert "taken as it is" in log(study, f"{CELL}/seed=1", "train_seed")
    old = read_json(study.path / f"results/cells/{CELL}/metrics.json")["made_by"]["library"]
    study.write_config(STUDY | {"noise": "secure", "seeds": [5, 0, 1]})
    succeeds(study.snakemake(f"results/cells/{CELL}/metrics.json"))
    made = read_json(study.path / f"results/cells/{CELL}/metrics.json")["made_by"]
    assert made["others"] == [old] and made["library"] != old
    study.write_config(STUDY | {"noise": "secure", "seeds": [0, 5, 1]})
    succeeds(study.snakemake("results/summary.csv"))
    made = read_json(study.path / f"results/cells/{CELL}/metrics.json")["made_by"]
    assert made["library"] == old and len(made["others"]) == 1
    assert len(study.read("privacy/spent.jsonl").splitlines()) == len(before["privacy/spent.jsonl"].splitlines()) + 2


def test_a_search_that_is_made_again_moves_no_model_that_was_paid_for(tmp_path):
    study, config = make_folder(tmp_path / "study"), copy.deepcopy(STUDY) | {"noise": "secure", "seeds": [0]}
    config["datasets"]["digits"]["splits"] = {"test": 0.2, "validation": 0.2}
    config["features"] = {"pixels": {"extractor": "pixels"}}
    config["methods"] = {
        "sgd": {
            "method": "first_order", "clipping_norm": 1.0, "steps": 3,
            "tuning": {"trials": 3, "space": {"learning_rate": {"low": 0.1, "high": 10}}},
        }
    }  # fmt: skip
    study.write_config(config)
    cell = "digits/pixels/sgd/eps=2"
    succeeds(study.snakemake(f"results/cells/{cell}/metrics.json"))
    before = paid(study, cell)
    update(study)
    succeeds(study.snakemake("results/summary.csv"))
    assert paid(study, cell) == before
