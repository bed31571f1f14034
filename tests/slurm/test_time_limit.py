"""A deep training through a real SLURM: what its time limit ends, the next attempt goes on with."""

import copy
import json

from tests.slurm.sent import MARK, numbers, works
from tests.workflow.conftest import TINY, make_folder

pytestmark = MARK
STUDY = {key: copy.deepcopy(TINY[key]) for key in ("study", "datasets")} | {
    "features": {"images": {"extractor": "images"}},
    "methods": {
        "wrn": {
            "method": "network_dpsgd",
            "network": "wrn-10-1",
            "learning_rate": 1.0,
            "clipping_norm": 1.0,
            "batch_size": 128,
            "steps": 12,
            "curve_points": 3,
            "moving_average": 0.9,
            "checkpoint_minutes": 0,
        }
    },
    "epsilons": ["2"],
    "seeds": [0],
}
CELL = "digits/images/wrn/eps=2"
# A training whose first attempt comes to step 5, and no further within its time.
STALLED = """
import os, time
from dpstudy.methods.keeper import Keeper
if not os.path.exists("stalled"):
    save = Keeper.save
    def stall(keeper, tensors, facts):
        save(keeper, tensors, facts)
        if facts["done"] == 5:
            os.mkdir("stalled")
            time.sleep(600)
    Keeper.save = stall
"""


def scores(study, run):
    """metrics.json without the measured time, and the hashes of files that hold it."""
    metrics = json.loads(study.read(f"{run}/metrics.json"))
    timed = [{key: row[key] for key in row if key != "seconds"} for row in metrics["seeds"]]
    files = {name: known for name, known in metrics["files"].items() if not name.endswith("run.json")}
    return metrics | {"seeds": timed, "files": files}


def test_a_training_over_its_time_goes_on_from_its_checkpoint(cluster, tmp_path):
    whole, killed = (make_folder(tmp_path / name) for name in ("whole", "killed"))
    for folder in (whole, killed):
        folder.write_config(STUDY)
        script = folder.path / "workflow/scripts/train_cell.py"
        first, path, rest = script.read_text().partition("from this_workflow import job\n")  # whose library it is
        script.write_text(first + path + STALLED + rest)
    (whole.path / "stalled").mkdir()  # as if it had happened: the same program, uninterrupted
    target, before = f"results/cells/{CELL}/metrics.json", numbers(cluster)
    done = whole.snakemake(target)
    assert done.returncode == 0, done.stderr
    works(killed, "--set-resources", "train_seed:runtime=min(attempt, 2)", "train_seed:gpu=1", "--", target)
    states = [state for number, state, rule in cluster.queue() if number not in before and "train_seed" in rule]
    assert sorted(states) == ["COMPLETED", "TIMEOUT"], states
    log = killed.path / f"results/logs/train_seed/{CELL}/seed=0.log"
    assert "training goes on after step 5, " in log.read_text()
    for run in (f"cells/{CELL}", f"runs/{CELL}/seed=0"):
        for name in ("ledger.json", "model.safetensors", "curve.parquet"):
            assert killed.read(f"{run}/{name}") == whole.read(f"{run}/{name}"), f"{run}/{name}"
    assert scores(killed, f"cells/{CELL}") == scores(whole, f"cells/{CELL}")
    assert not list(killed.path.rglob("checkpoint*"))
