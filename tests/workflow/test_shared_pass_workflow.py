"""The pass for sums over a split, shared among jobs, in the real workflow."""

import copy

import numpy as np
import pytest

from dpstudy.core.files import read_json, read_tensors
from tests.workflow.conftest import TINY, make_folder

STUDY = {key: copy.deepcopy(TINY[key]) for key in ("study", "datasets", "epsilons")} | {
    "features": {"pixels": {"extractor": "pixels"}},
    "methods": {"ls": {"method": "least_squares"}},
    "seeds": [0],
}
STUDY["datasets"]["digits"]["shards"] = 3
CELLS = [f"results/cells/digits/pixels/ls/eps={epsilon}" for epsilon in ("1", "inf")]
SUMS = [f"private/statistics/digits/pixels/train/clip={norm}/shared" for norm in ("1.0", "inf")]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The study, its pass made by one job."""
    study = make_folder(tmp_path_factory.mktemp("shared") / "study")
    study.write_config(STUDY)
    result = study.snakemake(*(f"{cell}/metrics.json" for cell in CELLS))
    assert result.returncode == 0, result.stdout + result.stderr
    return study


def test_a_shared_pass_gives_the_same_model_and_ledger(whole):
    before = {cell: read_tensors(whole.path / cell / "model.safetensors")["weights"] for cell in CELLS}
    ledger = read_json(whole.path / CELLS[0] / "ledger.json")
    shared = copy.deepcopy(STUDY)
    shared["datasets"]["digits"]["sum_jobs"] = 2
    whole.write_config(shared)
    targets = [f"{cell}/metrics.json" for cell in CELLS]
    planned = [rule for rule, _ in whole.planned(*targets)]
    # nothing is clipped at an infinite epsilon: those are other sums
    assert planned == 2 * ["add_shares"] + 2 * ["score_cell"] + 4 * ["sum_share"] + 2 * ["train_closed_form"]
    result = whole.snakemake(*targets)
    assert result.returncode == 0, result.stdout + result.stderr
    for cell in CELLS:
        np.testing.assert_allclose(
            read_tensors(whole.path / cell / "model.safetensors")["weights"], before[cell], rtol=2e-4, atol=2e-5
        )
    again = read_json(whole.path / CELLS[0] / "ledger.json")
    assert again.pop("files") != ledger.pop("files") and again == ledger, "noise is added once"
    for share in (0, 1):
        assert (whole.path / f"results/{SUMS[0]}/share-{share:03d}.safetensors").stat().st_mode & 0o777 == 0o600
    assert whole.planned(*targets) == []
