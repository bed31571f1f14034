"""What a run on a cluster is told and asked, where no cluster is needed to see it."""

import base64
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from snakemake.cli import get_argument_parser
from snakemake.executors import local

from tests.workflow.conftest import ROOT, SNAKEMAKE, make_folder


def run_py(study, *arguments, **environment):
    command = [sys.executable, "workflow/run.py", "--cores", "1", *arguments]
    return subprocess.run(
        command, cwd=study.path, env=study.environment | environment, capture_output=True, text=True, timeout=120
    )


def pretend_queue(study, tmp_path, *jobs):
    """A squeue that knows these jobs of the study's folder, and one of another; returns PATH."""
    squeue = tmp_path / "bin" / "squeue"
    squeue.parent.mkdir(exist_ok=True)
    lines = [*(f"{job}|{study.path}|None" for job in jobs), "7|/somewhere/else|None", f"8|{study.path}|Dependency"]
    squeue.write_text("#!/bin/sh\n" + "".join(f"echo '{line}'\n" for line in lines))
    squeue.chmod(0o755)
    return f"{squeue.parent}:{os.environ['PATH']}"


def leave_a_lock(study, of):
    """As a killed run leaves it."""
    locks = study.path / ".snakemake" / "locks"
    locks.mkdir(exist_ok=True)
    (locks / "0.input.lock").write_text("x\n")
    (study.path / ".snakemake" / "dpstudy-run").write_text(of)


def test_jobs_that_a_dead_run_left_in_the_queue_are_named_and_waited_for(study, tmp_path):
    path = pretend_queue(study, tmp_path, 12, 15)
    leave_a_lock(study, f"{os.uname().nodename} 999999\n")
    command = [sys.executable, "workflow/run.py", "--cores", "1"]
    environment = study.environment | {"PATH": path, "SLURM_JOB_ID": "15"}  # the controller itself
    with subprocess.Popen(command, cwd=study.path, env=environment, stdout=subprocess.PIPE, text=True) as process:
        said = process.stdout.readline()
        assert said.startswith("dpstudy: waiting for jobs that an earlier run left in SLURM's queue: 12;"), said
        assert process.poll() is None and (study.path / ".snakemake/locks/0.input.lock").exists()
        pretend_queue(study, tmp_path, 15)  # it has ended
        assert process.wait(60) == 0, process.stdout.read()
        assert "clearing the lock" in process.stdout.read()


def test_a_controller_on_another_node_is_known_to_have_ended(study, tmp_path):
    path = pretend_queue(study, tmp_path)
    leave_a_lock(study, "elsewhere 12\n")
    result = run_py(study, PATH=path)
    assert result.returncode == 1 and "a run on the machine 'elsewhere'" in result.stderr
    leave_a_lock(study, "elsewhere 12 7\n")
    result = run_py(study, PATH=path)
    assert result.returncode == 0 and "clearing the lock" in result.stdout, result.stdout + result.stderr
    path = pretend_queue(study, tmp_path, 7)  # SLURM has sent it again, under its number
    leave_a_lock(study, "elsewhere 12 7\n")
    result = run_py(study, PATH=path, SLURM_JOB_ID="7")
    assert result.returncode == 0 and "clearing the lock" in result.stdout, result.stdout + result.stderr


def test_rules_that_stay_with_the_controller_are_known_rules(study, tmp_path):
    environment = study.environment | {"DPSTUDY_HERE": "train_closed_form train_cels"}
    command = [SNAKEMAKE, "--cores", "1", "--dry-run"]
    result = subprocess.run(command, cwd=study.path, env=environment, capture_output=True, text=True, timeout=120)
    assert result.returncode and "DPSTUDY_HERE names 'train_cels', and the rules are " in result.stdout + result.stderr
    shows = tmp_path / "python"  # instead of what the controller would run
    shows.write_text('#!/bin/sh\necho "$DPSTUDY_HERE"')
    shows.chmod(0o755)
    del environment["DPSTUDY_HERE"]
    controller = subprocess.run(
        ["bash", "profiles/slurm/controller.sh"],
        cwd=study.path,
        env=environment | {"DPSTUDY_PYTHON": str(shows)},
        capture_output=True,
        text=True,
        check=True,
    )
    environment["DPSTUDY_HERE"] = controller.stdout.strip()
    # The study's last step, its longest queue on a busy cluster, is made of these.
    assert {"certify_cells", "summarise_cells", "build_table", "build_report"} < {*controller.stdout.split()}
    result = subprocess.run(command, cwd=study.path, env=environment, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr


def test_what_a_controller_says_is_read_by_its_owner_alone(tmp_path):
    """SLURM makes the file of its own output, for all to read, before the first line of the script."""
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho a name; echo 'another name' >&2")
    python.chmod(0o755)
    environment = os.environ | {"DPSTUDY_PYTHON": str(python), "SLURM_JOB_ID": "7"}
    command = ["sh", "-c", "umask 0; bash " + str(ROOT / "profiles/slurm/controller.sh")]
    for _ in range(2):  # SLURM may send a job again, under its number
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
        assert done.stdout == "what the run says stands in .snakemake/controller-7.out\n" and not done.stderr
    said = tmp_path / ".snakemake/controller-7.out"
    assert said.read_text() == 2 * "a name\nanother name\n" and said.stat().st_mode & 0o777 == 0o600


def test_jobs_that_stay_with_the_controller_leave_room_for_others(study):
    """At most as many are taken as can run: those that waited for a turn would count as submitted."""
    environment = study.environment | {"DPSTUDY_HERE": "prepare_shard"}
    command = [SNAKEMAKE, "--workflow-profile", "profiles/slurm", "--executor", "dryrun", "--dry-run", "--forceall"]
    result = subprocess.run(command, cwd=study.path, env=environment, capture_output=True, text=True, timeout=120)
    jobs = {name: part for part in result.stdout.split("rule ")[1:] for name in [part.partition(":")[0]]}
    assert "here=1" in jobs["prepare_shard"] and "here=" not in jobs["prepare_manifest"]
    profile = yaml.safe_load((ROOT / "profiles/slurm/config.yaml").read_text())
    at_a_time = Path(inspect.getsourcefile(local)).read_text()
    assert profile["resources"] == ["here=5"] and "workers = cores + 5 if cores is not None else 5" in at_a_time


def test_a_training_by_several_devices_asks_the_cluster_for_as_many(tmp_path):
    study = make_folder(tmp_path / "study")
    net = {"method": "network_dpsgd", "network": "wrn-10-1", "learning_rate": 1.0, "clipping_norm": 1.0, "steps": 2}
    config = {"study": "two", "features": {"images": {"extractor": "images"}}, "epsilons": ["2"], "seeds": [0]}
    config["datasets"] = {"digits": {"reader": "digits", "splits": {"test": 0.2}, "delta": "1e-4"}}
    study.write_config(config | {"methods": {"one": net, "two": net | {"devices": 2}}})
    options = ("--workflow-profile", "profiles/slurm", "--executor", "dryrun", "--dry-run")
    result = study.snakemake(*options, "--cores", "8")
    jobs = [part for part in result.stdout.split("rule ") if part.startswith("train_seed:")]
    asked = {name: re.search(r"gpu=(\d+)", job)[1] for job in jobs for name in re.findall(r"entry=(\w+)", job)}
    assert asked == {"one": "1", "two": "2"}, result.stdout + result.stderr


@pytest.mark.parametrize("name", ["default", "slurm"])
def test_profiles_name_rules_and_options_that_exist(name):
    profile = yaml.safe_load((ROOT / "profiles" / name / "config.yaml").read_text())
    known = {option for action in get_argument_parser()._actions for option in action.option_strings}
    assert [f"--{key}" for key in profile if not key.startswith("slurm-") and f"--{key}" not in known] == []
    rules = "".join(path.read_text() for path in (ROOT / "workflow/rules").glob("*.smk"))
    for rule in profile.get("set-resources", {}):
        assert f"rule {rule}:" in rules or f"as {rule} with:" in rules


def test_a_job_of_a_queue_records_itself_what_made_its_outputs(empty):
    """As the plugin runs it; the run that sent it may be dead by the time it ends."""
    shard = "results/data/digits/test/part-00000.parquet"
    command = [SNAKEMAKE, "--cores", "1", "--mode", "remote", "--nolock", shard]
    done = subprocess.run(command, cwd=empty.path, env=empty.environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and (empty.path / shard).exists(), done.stdout + done.stderr
    records = [base64.b64decode(path.name).decode() for path in (empty.path / ".snakemake/metadata").iterdir()]
    assert shard in records
