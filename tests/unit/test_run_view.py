"""Which calls of workflow/run.py get the view, and which Snakemake's own output."""

import pytest

from run import shows_progress


@pytest.mark.parametrize(
    "arguments",
    [
        "",
        "--cores all",
        "--cores 2 --configfile studies/own-data.yaml",
        "-c4 -k --retries=2 results/summary.csv",
        "--workflow-profile profiles/slurm -- results/tables/digits.tex",
        "--slurm-status-command squeue --seconds-between-status-checks 2 --default-resources slurm_partition=cpu",
    ],
)
def test_a_study_that_is_run_is_viewed(arguments, monkeypatch):
    monkeypatch.delenv("DPSTUDY_VERBOSE", raising=False)
    assert shows_progress(arguments.split())
    monkeypatch.setenv("DPSTUDY_VERBOSE", "1")
    assert not shows_progress(arguments.split())


OTHERS = (
    "-n -np -kn -p -h --dry-run --dryrun --dry --unlock --summary --lint --dag --touch --list --quiet --verbose "
    "--printshellcmds --report --help --logger --no-hooks"
)


@pytest.mark.parametrize("flag", OTHERS.split())
def test_what_is_asked_of_snakemake_itself_it_answers(flag, monkeypatch):
    monkeypatch.delenv("DPSTUDY_VERBOSE", raising=False)
    assert not shows_progress(["--cores", "2", flag])
