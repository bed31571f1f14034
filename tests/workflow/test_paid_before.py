"""Models that an earlier version paid for with secure noise are read, tabled and released by this one; none is trained.

paid_before.tar.xz has the results of paid_before.yaml as the commit 23daedd made them, before the library was
rearranged: every file of code has another name and hash since. Its images are drawn by a program.
"""

import hashlib
import tarfile
from pathlib import Path

import yaml

from tests.workflow.conftest import make_folder

HERE = Path(__file__).parent
PAID = ("cells/own/pixels/ls/eps=2", "cells/own/pixels/sgd/eps=2", "cells/own/images/net/eps=2")
SEEDS = ("runs/own/images/net/eps=2/seed=0", "runs/own/images/net/eps=2/seed=1")


def hashes(results: Path) -> dict[str, str]:
    """Of all that a training writes, and of the book."""
    paths = [results / folder / name for folder in PAID + SEEDS for name in ("model.safetensors", "ledger.json")]
    paths += [results / "privacy/spent.jsonl", results / "tables/paid.csv"]
    return {str(path.relative_to(results)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def test_what_an_earlier_version_paid_for_is_kept_and_used(tmp_path):
    study = make_folder(tmp_path / "study")
    study.write_config(yaml.safe_load((HERE / "paid_before.yaml").read_text()))
    with tarfile.open(HERE / "paid_before.tar.xz") as archive:
        archive.extractall(study.path, filter="data")
    before = hashes(study.path / "results")
    result = study.snakemake()
    assert result.returncode == 0, result.stdout + result.stderr
    assert hashes(study.path / "results") == before, "no model, ledger or line of the book is another, nor the table"
    logs = [path.read_text() for path in study.path.glob("results/logs/train_*/**/*.log")]
    assert len(logs) == 4 and all("paid for already, and taken as it is" in text for text in logs)
    bundle = "results/release/own/images/net/eps=2"
    result = study.snakemake(bundle)
    assert result.returncode == 0 and (study.path / bundle / "predict.py").exists(), result.stdout + result.stderr
    assert hashes(study.path / "results") == before
