"""What is known of a study that runs, from Snakemake's events."""

import pytest

from terminal.study import Study
from tests.unit.terminal.conftest import failed, finished, said, started


def test_cells_and_jobs_are_counted_those_of_earlier_runs_included(planned):
    assert (planned.cells, planned.cells_done, planned.jobs, planned.jobs_done) == (8, 5, 4, 0)
    planned.hear(started(1), 101.0)
    assert planned.cells_running() == 1
    planned.hear(finished(1), 102.0)
    assert (planned.cells_done, planned.jobs_done, planned.cells_running()) == (6, 1, 0)
    assert planned.last_cell == "digits/pixels/sgd/eps=1"


def test_jobs_that_are_of_no_cell_count_as_jobs_alone(planned):
    table = started(4, rule="build_table") | {"wildcards": {"table": "t"}, "output": ["results/tables/t.tex"]}
    planned.hear(table, 101.0)
    assert (planned.cells_running(), len(planned.running)) == (0, 1)
    planned.hear(failed(4), 102.0)
    assert (planned.cells_failed(), len(planned.failed)) == (0, 1)


def test_the_seeds_of_a_cell_are_one_cell_and_do_not_finish_it(planned):
    for seed in (0, 1):
        event = started(seed, rule="train_seed")
        event["output"] = [f"results/runs/digits/pixels/sgd/eps=1/seed={seed}/run.json"]
        planned.hear(event, 101.0)
    assert planned.cells_running() == 1
    planned.hear(finished(0), 102.0)
    assert planned.cells_done == 5


def test_a_failure_is_told_with_the_cell_and_the_sentence_of_its_log(planned, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    log = tmp_path / started(1)["log"][0]
    log.parent.mkdir(parents=True)
    log.write_text("2026-01-01 00:00:00,000 ERROR epsilon 1 cannot be reached\nTraceback\n")
    planned.hear(started(1), 101.0)
    told = planned.hear(failed(1), 102.0)
    assert told == ["failed: train_stepped digits/pixels/sgd/eps=1: epsilon 1 cannot be reached"]
    assert planned.cells_failed() == 1 and planned.cells_running() == 0
    planned.hear(started(2, "2"), 103.0)
    assert planned.hear(failed(2, "2"), 104.0) == [
        "failed: train_stepped digits/pixels/sgd/eps=2: see results/logs/train_stepped/digits/pixels/sgd/eps=2.log"
    ]


@pytest.mark.parametrize(
    ("status", "line", "what"),
    [
        ("TIMEOUT", "  digits: 2% (38 of 1500)", "SLURM ended it at its time limit"),
        ("CANCELLED", "", "it was cancelled in SLURM (scancel)"),
        ("OUT_OF_MEMORY", "", "SLURM ended it at its memory limit"),
        ("FAILED", "slurmstepd: error: Job 7 exceeded memory limit (900 > 515), being killed", "memory limit"),
        ("FAILED", "slurmstepd-n1: error: Detected 1 oom_kill event in StepId=7.batch.", "memory limit"),
        ("FAILED", "a job that speaks of OOM Killed", "see results/logs/train_stepped"),
    ],
)
def test_what_slurm_did_to_a_job_is_told(planned, tmp_path, monkeypatch, status, line, what):
    monkeypatch.chdir(tmp_path)
    slurm = tmp_path / "slurm" / "7.log"
    slurm.parent.mkdir()
    slurm.write_text(f"{line}\n")
    planned.hear(started(1), 101.0)
    # what the plugin 2.8 says, the missing blank included
    message = f"SLURM-job '7' failed, SLURM status is: '{status}'. Detailed reason unavailable.For further details see"
    [told] = planned.hear(failed(1, message=message, logs=[str(slurm)]), 102.0)
    assert told.startswith("failed: train_stepped digits/pixels/sgd/eps=1: ") and what in told
    job = planned.failed[1]
    assert job.ended.startswith(told.partition("eps=1: ")[2]) == (not what.startswith("see"))
    assert job.logs[1] == "slurm/7.log"


def test_a_job_that_is_sent_again_has_not_failed(planned):
    planned.hear(started(1), 101.0)
    planned.hear(failed(1), 102.0)
    assert planned.hear(said("Trying to restart job 1."), 102.0) == [
        "tried again: train_stepped digits/pixels/sgd/eps=1"
    ]
    assert not planned.failed
    planned.hear(started(1), 103.0)
    told = planned.hear(failed(1), 104.0)
    assert told == ["failed again, for the same reason: train_stepped digits/pixels/sgd/eps=1"]
    planned.hear(said("Trying to restart job 1."), 104.0)
    planned.hear(started(1), 105.0)
    planned.hear(finished(1), 106.0)
    assert planned.jobs_done == 1


def test_jobs_that_end_because_somebody_stopped_the_study_have_not_failed(planned):
    planned.hear(started(1), 101.0)
    planned.stopping = True
    assert planned.hear(failed(1), 102.0) == []
    assert not planned.failed


def test_warnings_are_passed_on_and_chatter_is_not(planned):
    assert planned.hear(said("Select jobs to execute..."), 101.0) == []
    against = "You are running snakemake in a SLURM job context. This is not recommended, as it may lead to surprises."
    assert planned.hear(said(against, "WARNING"), 101.0) == []  # controller.sh does so on purpose
    assert planned.hear(said("RuleException:\nCalledProcessError in file train.smk", "ERROR"), 101.0) == []
    assert planned.hear(said("config.yaml: epsilon: unknown key", "ERROR"), 101.0) == [
        "config.yaml: epsilon: unknown key"
    ]
    place = '\n  File "rules/common.smk", line 49, in <module>'
    refused = f'WorkflowError in file "rules/common.smk", line 49:\ndpstudy: no key{place}'
    assert planned.hear(said(refused, "ERROR"), 101.0) == ["dpstudy: no key"] and not planned.refused  # it had begun
    fresh = Study(began=100.0)
    assert fresh.hear(said(refused, "ERROR"), 101.0) == [] and fresh.refused == "no key"
    fault = f'KeyError in file "a.smk", line 2:\n1{place}'
    assert planned.hear(said(fault, "ERROR"), 101.0) == [fault]
    assert planned.hear(said("Nothing to be done (all ...)."), 101.0) == ["Nothing to be done (all ...)."]
    assert [planned.hear(said("no account", "WARNING"), 101.0) for _ in range(3)] == [["no account"], [], []]


def test_the_rest_is_estimated_from_jobs_of_the_same_kind(planned):
    assert planned.seconds_left(101.0) is None
    planned.hear(started(1), 100.0)
    planned.hear(started(2, "2"), 100.0)
    planned.hear(finished(1), 110.0)
    # left are 2 cells of 10 s, one of them begun 10 s ago, and a table of which nothing is known; two jobs at once
    seconds, known = planned.seconds_left(110.0)
    assert seconds == pytest.approx(10 / 2) and not known
    planned.hear(finished(2), 110.0)
    planned.hear(started(3, "4"), 110.0)
    planned.hear(started(4, rule="build_table") | {"wildcards": {"table": "t"}, "output": []}, 110.0)
    planned.hear(finished(4), 112.0)
    seconds, known = planned.seconds_left(112.0)
    assert seconds == pytest.approx(8 / (24 / 12)) and known


def test_nothing_is_estimated_while_most_jobs_are_of_unknown_length(planned):
    tables = [["build_table", {"table": table}, False] for table in "uv"]
    planned.hear({"event": "plan", "study": "tiny", "cells": 8, "due": tables}, 100.0)
    for number, table in enumerate("tu"):
        job = started(number, rule="build_table") | {"wildcards": {"table": table}, "output": []}
        planned.hear(job, 100.0)
        planned.hear(finished(number), 101.0)
    assert planned.seconds_left(102.0) is None  # one table is left, and three cells
    planned.hear(started(5, "1"), 102.0)
    planned.hear(finished(5), 103.0)
    assert planned.seconds_left(103.0) is not None


def test_what_a_job_has_to_tell_its_owner_is_shown_when_it_has_ended(planned, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (event,) = [started(1, rule="merge_matches")]
    log = tmp_path / event["log"][0]
    log.parent.mkdir(parents=True)
    log.write_text(
        "2026 INFO begun\n2026 WARNING of a library\n2026 NOTICE 3 of 9 records are left out\n2026 INFO done\n"
    )
    assert planned.hear(event, 100.0) == []
    assert planned.hear(finished(1), 101.0) == [
        "note: merge_matches digits/pixels/sgd/eps=1: 3 of 9 records are left out"
    ]
    assert planned.hear(started(2), 102.0) == planned.hear(finished(2), 103.0) == [], "of a job without a log"
