"""A model is bound to its ledger: of a finished study every two files of one name are exchanged in turn, with their
times, and each exchange is named."""

import itertools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dpstudy.cell.bound import Binding, PaidHashes
from dpstudy.cell.bound_before import BoundBefore
from dpstudy.core.files import read_json, sha256
from dpstudy.privacy.spending import Spending
from tests.workflow.clinic import CONFIG
from tests.workflow.conftest import StudyFolder, copy_of, make_folder
from tests.workflow.test_seed_jobs import STUDY
from tests.workflow.test_status import status

SECURE = CONFIG | {"epsilons": ["1", "2"], "tables": {"tiny": {"dataset": "clinic"}}}
SEEDED = STUDY | {
    "features": {"images": {"extractor": "images"}, "pixels": {"extractor": "pixels"}},
    "methods": STUDY["methods"] | {"ls": {"method": "least_squares"}},
    "cells": [{"features": ["images"], "entries": ["wrn"]}, {"features": ["pixels"], "entries": ["ls"]}],
    "epsilons": ["1", "2"],
}
LS, SGD = "clinic/pixels/least-squares", "clinic/pixels/dp-sgd"
BUNDLES = [f"results/release/{LS}/eps={epsilon}" for epsilon in ("1", "2")]


def succeeds(result):
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.fixture(scope="module")
def secure(finished_clinic, tmp_path_factory):
    study = copy_of(finished_clinic, tmp_path_factory.mktemp("secure") / "study")
    study.write_config(SECURE)
    succeeds(study.snakemake("all", *BUNDLES))
    return study


@pytest.fixture(scope="module")
def seeded(tmp_path_factory):
    study = make_folder(tmp_path_factory.mktemp("seeded") / "study")
    study.write_config(SEEDED)
    cells = [f"digits/{entry}/eps={epsilon}" for entry in ("images/wrn", "pixels/ls") for epsilon in ("1", "2")]
    succeeds(study.snakemake(*(f"results/cells/{cell}/metrics.json" for cell in cells)))
    return study


@pytest.fixture
def clinic(secure, tmp_path):
    return copy_of(secure, tmp_path / "study")


@pytest.fixture
def digits(seeded, tmp_path):
    return copy_of(seeded, tmp_path / "study")


def exchange(a: Path, b: Path) -> None:
    """Each gets the other's content, and keeps its own times."""
    times = [(os.stat(path).st_atime_ns, os.stat(path).st_mtime_ns) for path in (a, b)]
    contents = [path.read_bytes() for path in (b, a)]
    for path, content, time in zip((a, b), contents, times, strict=True):
        path.write_bytes(content)
        os.utime(path, ns=time)


def binding_of(study) -> Binding:
    results = study.path / "results"
    return Binding(PaidHashes(Spending(results / "privacy/spent.jsonl")), str(results))


def cells_of(study) -> list[str]:
    root = study.path / "results/cells"
    return sorted(path.parent.relative_to(root).as_posix() for path in root.rglob("metrics.json"))


def pairs(results: Path):
    """Every two files of one name and of other contents, of cells and of seeds."""
    files = [path for room in ("cells", "runs") for path in sorted(results.glob(f"{room}/**/*")) if path.is_file()]
    for a, b in itertools.combinations(files, 2):
        if a.name == b.name and a.read_bytes() != b.read_bytes():
            yield a, b


def faults_of(look, study, metrics=True) -> list[str]:
    return [told for cell in cells_of(study) for told in look.faults(cell, metrics)]


@pytest.mark.parametrize("which", ["secure", "seeded"])
def test_every_exchange_of_two_files_is_named_in_a_sentence(which, request, tmp_path):
    shutil.copytree(request.getfixturevalue(which).path / "results", tmp_path / "results", copy_function=shutil.copy2)
    study, look, names = StudyFolder(tmp_path), binding_of(StudyFolder(tmp_path)), set()
    assert faults_of(look, study) == [] and len(cells_of(study)) == 4
    seen = BoundBefore(look, str(tmp_path / "seen.json"))
    for a, b in pairs(study.path / "results"):
        assert faults_of(seen, study) == []
        exchange(a, b)
        told = faults_of(look, study)
        assert sorted(one.partition(":")[0] for one in told) == sorted(map(str, (a, b))), (a, b, told)
        for path, one in ((a, told), (b, told)):
            cell = path.parent.relative_to(study.path / "results").as_posix().partition("/")[2]
            (sentence,) = [each for each in one if each.startswith(f"{path}: ")]
            assert cell.partition("/seed=")[0] in sentence.partition(": ")[2] and "; delete " in sentence
            assert ("is taken from" in sentence) == (which == "secure") and sentence.count("; ") == 1
        assert faults_of(seen, study) == told, "whatever its times are"
        assert faults_of(look, study, metrics=False) == [one for one in told if "/metrics.json: " not in one]
        exchange(a, b)
        names.add(a.name)
    every = {"model.safetensors", "ledger.json", "run.json", "scores.parquet", "metrics.json", "curve.parquet"}
    assert names == every and faults_of(look, study) == []


def test_whose_a_file_is_stands_in_the_sentence(clinic):
    cells, look = clinic.path / "results/cells", binding_of(clinic)
    folders = [cells / LS / f"eps={epsilon}" for epsilon in ("1", "2")]
    for name, present, wanted in (
        ("ledger.json", "is of {b}", "of {a}"),
        ("run.json", "is of {b}", "of {a}"),
        ("scores.parquet", "is of {b}", "of {a}"),
        ("metrics.json", "is of {b}", "of {a}"),
        ("model.safetensors", "is that of {b}", "that of {a}, by its SHA-256 in run.json"),
    ):
        exchange(*(folder / name for folder in folders))
        for own, other in ((1, 2), (2, 1)):
            (told,) = look.faults(f"{LS}/eps={own}")
            spelled = {"a": f"{LS}/eps={own}", "b": f"{LS}/eps={other}"}
            path = cells / LS / f"eps={own}" / name
            assert told.startswith(f"{path}: {present.format(**spelled)}, and should be {wanted.format(**spelled)}; ")
        exchange(*(folder / name for folder in folders))


def test_files_that_are_exchanged_together_are_named_each(clinic):
    """But for those of which only files that were exchanged with them could tell: then these are named."""
    cells, look = [f"{SGD}/eps={epsilon}" for epsilon in ("1", "2")], binding_of(clinic)
    names = ("model.safetensors", "ledger.json", "run.json", "scores.parquet", "metrics.json", "curve.parquet")
    for chosen in itertools.chain(*(itertools.combinations(names, count) for count in range(1, len(names) + 1))):
        files = [[clinic.path / "results/cells" / cell / name for cell in cells] for name in chosen]
        for a, b in files:
            exchange(a, b)
        silent = {"curve.parquet"} if "run.json" in chosen else set()
        silent |= {"model.safetensors"} if {"run.json", "ledger.json"} <= set(chosen) else set()
        for cell in cells:
            told = {Path(one.partition(": ")[0]).name for one in look.faults(cell)}
            assert told == set(chosen) - silent, chosen
        for a, b in files:
            exchange(a, b)


def test_what_only_the_book_can_tell_is_told_and_an_earlier_line_cannot(clinic):
    """All of a cell's files, made to agree with each other."""
    folder, book = clinic.path / "results/cells" / LS / "eps=2", clinic.path / "results/privacy/spent.jsonl"
    ledger, run = read_json(folder / "ledger.json"), read_json(folder / "run.json")
    ledger["epsilon"] = 0.1
    (folder / "ledger.json").write_text(json.dumps(ledger))
    run["files"]["ledger.json"] = sha256(folder / "ledger.json")
    (folder / "run.json").write_text(json.dumps(run))
    metrics = read_json(folder / "metrics.json")
    metrics["files"]["run.json"] = sha256(folder / "run.json")
    (folder / "metrics.json").write_text(json.dumps(metrics))
    (told,) = binding_of(clinic).faults(f"{LS}/eps=2")
    assert told.startswith(f"{folder}/ledger.json: is not what the training wrote") and "the book of what was" in told
    lines = [json.loads(line) for line in book.read_text().splitlines()]
    (line,) = [line for line in lines if line["cell"] == f"{LS}/eps=2"]
    begun = {key: value for key, value in line.items() if key != "files"} | {
        "training": "of which there is a checkpoint"
    }
    book.write_text("".join(json.dumps(one) + "\n" for one in [begun, *lines]))
    assert binding_of(clinic).faults(f"{LS}/eps=2") == [told], "it wrote none of these files"
    del line["files"]
    book.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert binding_of(clinic).faults(f"{LS}/eps=2") == []
    book.write_text("".join(json.dumps(one) + "\n" for one in lines if one is not line))
    (told,) = binding_of(clinic).faults(f"{LS}/eps=2")
    assert "the book of what was spent has no training of" in told


def as_an_earlier_version_wrote(folder: Path) -> None:
    """Without the keys that bind."""
    for path in folder.rglob("*.json"):
        document = read_json(path)
        for key in ("files", "cell"):
            document.pop(key, None)
        path.write_text(json.dumps(document))


@pytest.mark.parametrize("which", ["clinic", "digits"])
def test_what_an_earlier_version_wrote_is_read_as_before(which, request):
    study = request.getfixturevalue(which)
    book = study.path / "results/privacy/spent.jsonl"
    for room in ("cells", "runs"):
        as_an_earlier_version_wrote(study.path / "results" / room)
    if book.exists():
        lines = [json.loads(line) for line in book.read_text().splitlines()]
        book.write_text("".join(json.dumps({k: v for k, v in line.items() if k != "files"}) + "\n" for line in lines))
    look = binding_of(study)
    assert faults_of(look, study) == []
    a, b = (study.path / "results/cells" / cell for cell in cells_of(study)[:2])
    exchange(a / "ledger.json", b / "ledger.json")
    assert faults_of(look, study) == [], "nobody can tell"
    exchange(a / "run.json", b / "run.json")
    told = faults_of(look, study)
    assert len(told) == 2 and all(f"{path}/run.json: is of " in "".join(told) for path in (a, b))
    assert ("restore it as the training left it" in told[0]) == book.exists()


def test_files_of_an_earlier_version_are_held_against_the_book_where_it_has_hashes(clinic):
    """As 0.2.0 wrote them before the others were bound."""
    results = clinic.path / "results"
    book = results / "privacy/spent.jsonl"
    as_an_earlier_version_wrote(results / "cells")
    lines = [json.loads(line) for line in book.read_text().splitlines()]
    for line in lines:
        line["files"] = {name: sha256(results / "cells" / line["cell"] / name) for name in line["files"]}
    book.write_text("".join(json.dumps(line) + "\n" for line in lines))
    look = binding_of(clinic)
    assert faults_of(look, clinic) == []
    for name in ("model.safetensors", "ledger.json", "curve.parquet"):
        a, b = (results / f"cells/{SGD}/eps={epsilon}" / name for epsilon in ("1", "2"))
        exchange(a, b)
        told = faults_of(look, clinic)
        assert [one.partition(":")[0] for one in told] == [str(a), str(b)]
        assert all("by its SHA-256 in the book of what was spent; delete " in one for one in told)
        exchange(a, b)


def test_seeds_of_an_entry_that_had_another_method_are_no_part_of_its_cell(clinic):
    shutil.copytree(clinic.path / f"results/cells/{SGD}/eps=2", clinic.path / f"results/runs/{LS}/eps=1/seed=0")
    assert faults_of(binding_of(clinic), clinic) == []


def test_no_rule_builds_on_exchanged_files(clinic):
    """Where Snakemake's hooks look at nothing, as on a cluster's machine, each job does."""
    model, other = (clinic.path / "results/cells" / LS / f"eps={e}/model.safetensors" for e in ("1", "2"))
    exchange(model, other)
    cell = f"results/cells/{LS}/eps=1"
    for target in (
        "results/privacy/certificates/clinic.json",
        "results/privacy/total.json",
        f"{cell}/metrics.json",
        "results/summary.csv",
        BUNDLES[0],
    ):
        before = sha256(clinic.path / target) if (clinic.path / target).is_file() else ""
        hooks = clinic.snakemake("--force", "--", target)
        assert hooks.returncode and "dpstudy: nothing was run: " in hooks.stderr, target
        assert f"{cell}/model.safetensors: is that of {LS}/eps=2, and should be that of" in hooks.stderr
        assert not before or sha256(clinic.path / target) == before
        job = clinic.snakemake("--no-hooks", "--force", "--", target)
        assert job.returncode and f"dpstudy: {cell}/model.safetensors: is that of {LS}/eps=2" in job.stderr, target
    exchange(model, other)
    succeeds(clinic.snakemake("results/tables/tiny.tex", *BUNDLES))


def test_a_cell_is_not_gathered_of_exchanged_seeds(digits):
    runs = digits.path / "results/runs/digits/images/wrn/eps=1"
    exchange(*(runs / f"seed={seed}/scores.parquet" for seed in (0, 1)))
    target = "results/cells/digits/images/wrn/eps=1/run.json"
    job = digits.snakemake("--no-hooks", "--force", "--", target)
    path = (runs / "seed=0/scores.parquet").relative_to(digits.path)
    assert job.returncode and f"dpstudy: {path}: is of digits/images/wrn/eps=1, seed 1, and should be of" in job.stderr


def test_status_names_an_exchange_and_says_what_mends_it(clinic):
    assert status(clinic) == "cells: 4 done, 0 stale, 0 missing\nnothing to be done\n"
    exchange(*(clinic.path / "results/cells" / LS / f"eps={e}/ledger.json" for e in ("1", "2")))
    first, *named = status(clinic).splitlines()
    assert first == "cells: 2 done, 0 stale, 0 missing, 2 wrong"
    cell, other = (f"{LS}/eps={epsilon}" for epsilon in ("1", "2"))
    folder = f"results/cells/{cell}"
    assert named[0] == (
        f"  wrong   {folder}/ledger.json: is of {other}, and should be of {cell}; delete {folder} and run the study "
        "again: what was paid for is taken from results/privacy/paid, and no noise is drawn"
    )
    assert len(named) == 2
    ledger = clinic.path / "results/cells" / SGD / "eps=1/ledger.json"
    whole, times = ledger.read_text(), os.stat(ledger)
    ledger.write_text(whole[:99])
    os.utime(ledger, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert f"  wrong   results/cells/{SGD}/eps=1/ledger.json: not valid JSON" in status(clinic)
    ledger.write_text(whole)
    shutil.rmtree(clinic.path / BUNDLES[0])
    release = [sys.executable, "workflow/run.py", BUNDLES[0], "--cores", "2"]
    refused = subprocess.run(release, cwd=clinic.path, env=clinic.environment, capture_output=True, text=True)
    sentence = named[0].removeprefix("  wrong   ")
    assert refused.returncode == 1 and f"dpstudy: nothing was run: {sentence}\n" in refused.stderr
    assert not (clinic.path / BUNDLES[0]).exists()
    for epsilon in ("1", "2"):
        shutil.rmtree(clinic.path / "results/cells" / LS / f"eps={epsilon}")
    book = clinic.read("privacy/spent.jsonl")
    succeeds(clinic.snakemake("all", *BUNDLES))
    assert clinic.read("privacy/spent.jsonl") == book
    assert status(clinic).startswith("cells: 4 done, 0 stale, 0 missing\n")


def verify(bundle: Path) -> tuple[int, str]:
    done = subprocess.run([sys.executable, "-I", str(bundle / "verify.py")], capture_output=True, text=True)
    assert not done.stderr
    return done.returncode, done.stdout


def test_every_exchange_between_two_bundles_is_named_by_verify(secure, tmp_path):
    one, other = (tmp_path / name for name in ("a", "b"))
    for source, copied in zip(BUNDLES, (one, other), strict=True):
        shutil.copytree(secure.path / source, copied)
        assert verify(copied)[0] == 0 and "WRONG" not in verify(copied)[1]
    assert f"right: ledger.json is of {LS}/eps=1, and of this model\n" in verify(one)[1]
    assert "right: PRIVACY.md states the epsilon of ledger.json, 1\n" in verify(one)[1].replace(" 1.0\n", " 1\n")
    assert f" {sha256(one / 'bundle.json')}\n" in verify(one)[1]
    names = [path.relative_to(one) for path in sorted(one.rglob("*")) if path.is_file()]
    differing = [name for name in names if (one / name).read_bytes() != (other / name).read_bytes()]
    assert {"PRIVACY.md", "README.md", "bundle.json", "ledger.json", "model.safetensors"} <= set(map(str, differing))
    for name in differing:
        exchange(one / name, other / name)
        for bundle in (one, other):
            failed, told = verify(bundle)
            if str(name) == "README.md":  # which its owner is asked to write in, but for another epsilon
                assert "could not check: README.md: was written in" in told
                assert failed and "WRONG: README.md: states ε = " in told
            else:
                assert failed and f"WRONG: {name}: is " in told, told
        exchange(one / name, other / name)
    exchange(one / "model.safetensors", other / "model.safetensors")
    image = next((secure.path / "data/clinic/images").iterdir())
    program = [sys.executable, "-I", str(one / "predict.py"), str(image)]
    refused = subprocess.run(program, capture_output=True, text=True)
    assert refused.returncode == 1 and "is not the model that ledger.json is of" in refused.stderr
