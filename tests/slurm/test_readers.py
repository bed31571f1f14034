"""What a whole run with secure noise writes through a real SLURM, anywhere, is its owner's to read alone."""

import subprocess
import sys

from tests.slurm.sent import MARK, PATIENCE_SECONDS, PROFILE, numbers
from tests.workflow.clinic import CONFIG, write_clinic
from tests.workflow.conftest import make_folder
from tests.workflow.readers import Watched

pytestmark = MARK
CELL = "results/cells/clinic/pixels/least-squares/eps=2/metrics.json"


def test_nothing_that_a_run_writes_is_open_to_others(cluster, tmp_path):
    study = make_folder(tmp_path / "study")
    write_clinic(study.path / "data" / "clinic")
    watched, before = Watched(tmp_path), numbers(cluster)
    watched.write_config(CONFIG | {"datasets": {"clinic": CONFIG["datasets"]["clinic"] | {"shards": 1}}})
    command = ["sbatch", "--parsable", "--wait", "--cpus-per-task=1", "--mem=2500", "--partition=cpu"]
    command += ["profiles/slurm/controller.sh", *PROFILE[2:], "--", CELL]
    with watched:
        environment = watched.environment | {"DPSTUDY_PYTHON": sys.executable}
        done = subprocess.run(
            command, cwd=study.path, env=environment, capture_output=True, text=True, timeout=PATIENCE_SECONDS
        )
    number = done.stdout.strip()
    said = (study.path / f".snakemake/controller-{number}.out").read_text()
    assert done.returncode == 0 and "Done." in said, done.stderr + said
    submitted = [comment for found, _, comment in cluster.queue() if found not in before]
    assert any("extract_shard" in comment for comment in submitted), submitted
    assert watched.open_to_others() == [f"study/dpstudy-{number}.out"]
    (line,) = (study.path / f"dpstudy-{number}.out").read_text().splitlines()
    assert line == f"what the run says stands in .snakemake/controller-{number}.out"
    made = watched.made()
    assert {
        "study/.snakemake/slurm_logs",
        f"study/{CELL}",
    } < made.keys()  # SLURM's own files of the jobs lie in the first
    assert any(path.startswith("tmp/") for path in made)
