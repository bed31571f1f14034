"""A few jobs through a real SLURM, which CI runs where one is installed; the rest is `make test-slurm`'s."""

import shutil

import pytest

from tests.slurm.sent import SHORT_MARK, works
from tests.slurm.test_slurm import STUDY
from tests.workflow.conftest import StudyFolder, make_folder

pytestmark = SHORT_MARK
CELL = "results/cells/digits/pixels/ls/eps=1"


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    study = make_folder(tmp_path_factory.mktemp("local") / "study")
    study.write_config(STUDY)
    result = study.snakemake(f"{CELL}/metrics.json")
    assert result.returncode == 0, result.stderr
    return study


def test_a_cell_made_through_the_queue_is_the_one_that_a_local_run_makes(cluster, local, tmp_path):
    study = StudyFolder(tmp_path / "study")
    shutil.copytree(local.path, study.path, copy_function=shutil.copy2)
    for made in (CELL, "results/private"):
        shutil.rmtree(study.path / made)
    works(study, f"{CELL}/metrics.json")
    rules = [comment for _, state, comment in cluster.queue() if state == "COMPLETED"]
    for rule in ("sum_statistics", "train_closed_form"):
        assert any(f"rule_{rule}_" in comment for comment in rules), rules
    for name in ("ledger.json", "model.safetensors"):
        assert (study.path / CELL / name).read_bytes() == (local.path / CELL / name).read_bytes()
