"""What is said last of a study that stopped."""

import os

from terminal.failures import WITHOUT_A_WORD, explain, not_made

ERROR = "2026-01-01 00:00:00,000 ERROR {}\n"


def write(folder, name, content, age=0):
    log = folder / "results" / "logs" / name
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(content)
    os.utime(log, (1000 - age, 1000 - age))


def test_each_mistake_is_said_once_with_jobs_and_logs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for epsilon in range(5):
        write(tmp_path, f"train_stepped/d/f/e/eps={epsilon}.log", ERROR.format("too small"))
    write(tmp_path, "train_stepped/d/f/other/eps=1.log", ERROR.format("of an earlier run"), age=10)
    logs = ["results/logs/train_seed/d/f/net/eps=1/seed=0.log", "slurm/12.log"]
    seed = "train_seed d/f/net/eps=1/seed=0"
    failed = [(seed, logs, ""), ("train_seed late", ["slurm/13.log"], "too long; ask more")]
    explain(1, 1000.0, failed, trouble="")
    said = capsys.readouterr().err
    assert said.count("dpstudy: too small\n") == 1
    assert "  job: train_stepped d/f/e/eps=0\n  log: results/logs/train_stepped/d/f/e/eps=0.log\n" in said
    assert "  and 2 more jobs\n" in said
    assert f"dpstudy: {WITHOUT_A_WORD}\n  job: {seed}\n" in said
    assert "seed=0.log, slurm/12.log\n" in said
    assert "\ndpstudy: too long; ask more\n  job: train_seed late\n  log: slurm/13.log\n" in said
    assert "earlier" not in said
    assert said.endswith("the same command continues once what is named above is mended\n")


def test_a_disk_that_no_job_could_write_to_is_told_for_all_of_them(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    explain(1, 0.0, [("certify_cells d", ["results/logs/certify_cells/d.log"], "")], trouble="the disk is full")
    said = capsys.readouterr().err
    assert said.startswith("\ndpstudy: the disk is full\n  job: certify_cells d\n") and WITHOUT_A_WORD not in said


def test_a_study_that_was_stopped_only_continues(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    explain(128 + 15, 0.0, [], trouble="")
    assert capsys.readouterr().err == (
        "\ndpstudy: the study stopped (signal 15); what is finished is kept, the same command continues\n"
    )


def test_a_target_that_no_rule_makes_is_recognised():
    said = (
        "MissingRuleException:\nNo rule to produce results/tables/acu.csv (if you use input functions make sure that "
        "they don't raise unexpected exceptions)."
    )
    assert not_made(said) == "results/tables/acu.csv" and not_made("WorkflowError:\nNo rule") == ""
