"""What goes beyond Snakemake's public interface, with the versions that it was tried with."""

import asyncio
import importlib.metadata
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from dpstudy.core.errors import StudyError
from dpstudy.plan import internals

WORKFLOW = Path(__file__).parents[3] / "workflow"


def test_this_version_of_snakemake_was_tried():
    """On another: run tests/workflow and tests/slurm, look at each function of plan/internals.py, then add it."""
    assert importlib.metadata.version("snakemake") in internals.TRIED


def test_nothing_else_reaches_behind_the_public_interface():
    beyond = re.compile(
        r"workflow\.(dag|scheduler|persistence)\b|snakemake\.(persistence|dag|jobs|workflow)\b|/metadata\b"
    )
    files = [*WORKFLOW.rglob("*.py"), *WORKFLOW.rglob("*.smk"), WORKFLOW.parent / "Snakefile"]
    found = {path.name for path in files if beyond.search(path.read_text(encoding="utf-8"))}
    assert found == {"internals.py"}


class Outputs(list):
    """As Snakemake's named lists."""

    def __init__(self, **named):
        super().__init__(named.values())
        self.items = named.items


class Planned:
    """A job of a graph."""

    def __init__(self, name: str):
        self.rule = SimpleNamespace(name=name)


def job(name: str, params=(), **outputs):
    return SimpleNamespace(
        rule=SimpleNamespace(name=name, script="../scripts/train_cell.py"),
        wildcards_dict={"dataset": "own"},
        input=["a", "b"],
        output=Outputs(**outputs),
        params=SimpleNamespace(**dict(params)),
    )


def test_a_job_is_told_by_its_names_and_files():
    one = job("train_seed", {"request": {"seeds": [1]}}, run="r.json", ledger="l.json")
    workflow = SimpleNamespace(dag=SimpleNamespace(needrun_jobs=lambda: iter([one]), jobs=[one, job("all")]))
    found = internals.due_jobs(workflow)
    assert found == [
        internals.Job(
            "train_seed",
            {"dataset": "own"},
            ["a", "b"],
            {"run": "r.json", "ledger": "l.json"},
            ["r.json", "l.json"],
            "../scripts/train_cell.py",
            [1],
        )
    ]
    assert [one.rule for one in internals.all_jobs(workflow)] == ["train_seed", "all"]


def test_jobs_come_in_one_order_whatever_snakemakes_sets_have():
    jobs = [job(name) for name in ("train", "score", "train", "train", "train")]
    for one, epsilon in zip(jobs, ("8", "1", "inf", "0.5", "10"), strict=True):
        one.wildcards_dict = {"dataset": "own", "epsilon": epsilon}
    for order in (jobs, jobs[::-1]):
        found = internals.due_jobs(SimpleNamespace(dag=SimpleNamespace(needrun_jobs=lambda order=order: iter(order))))
        told = [(one.rule, one.wildcards["epsilon"]) for one in found]
        assert told == [("score", "1"), ("train", "0.5"), ("train", "8"), ("train", "10"), ("train", "inf")]


def test_readings_are_counted_without_the_rule_all():
    shard, cell, whole = (Planned(name) for name in ("shard", "cell", "all"))
    graph = SimpleNamespace(jobs=[shard, cell, whole], dependencies={shard: [], cell: [shard, shard], whole: [cell]})
    assert internals.readings(SimpleNamespace(dag=graph)) == [["shard", "cell", 2]]


@pytest.mark.parametrize(
    ("dry", "due", "said", "printed"),
    [
        (True, ["job"], "no room", ["dpstudy: a run would stop at once: no room"]),
        (True, ["job"], "", []),
        (True, [], "no room", []),  # nothing would run
        (False, ["job"], "no room", []),  # its hook refuses it
    ],
)
def test_a_dry_run_says_at_its_end_what_was_found_when_its_jobs_were_known(dry, due, said, printed, monkeypatch):
    from snakemake.logging import logger

    done, told = [], []
    monkeypatch.setattr(logger, "warning", told.append)
    workflow = SimpleNamespace(dryrun=dry, dag=SimpleNamespace(needrun_jobs=lambda: iter(due)))
    workflow._build_dag = lambda: done.append("built")
    workflow.log_provenance_info = lambda: done.append("ended")
    internals.tell_when_planned(workflow, lambda: done.append("looked") or said)
    workflow._build_dag()
    assert not told
    workflow.log_provenance_info()
    assert told == printed and done == ["built", *(["looked"] if dry and due else []), "ended"]


@pytest.mark.parametrize(("limit", "lifted"), [((100, 1), True), ((5, 1), False)])
def test_only_the_default_limit_of_jobs_is_lifted(limit, lifted):
    limiter = SimpleNamespace(max_jobs=limit[0], timespan=limit[1])
    workflow = SimpleNamespace(scheduler=SimpleNamespace(job_rate_limiter=limiter))
    internals.unthrottle(workflow)
    assert (workflow.scheduler.job_rate_limiter is None) == lifted


def test_an_unknown_rule_is_not_run_here():
    workflow = SimpleNamespace(rules=[SimpleNamespace(name="build_table")])
    with pytest.raises(StudyError, match="DPSTUDY_HERE names 'nothing', and the rules are build_table"):
        internals.run_here(workflow, ["nothing"])


def test_sizes_of_inputs_are_known_while_an_event_loop_runs(tmp_path, monkeypatch):
    """And of a file that is not there yet Snakemake is told so, as its own would tell it."""
    from snakemake.exceptions import is_file_not_found_error
    from snakemake.iocontainers import InputFiles

    monkeypatch.setattr(InputFiles, "size_files", InputFiles.size_files)
    internals.look_up_sizes()
    paths = [str(tmp_path / name) for name in "ab"]
    Path(paths[0]).write_bytes(bytes(3 << 20))

    async def megabytes(files):
        return InputFiles(files).size_mb

    assert asyncio.run(megabytes(paths[:1])) == 3
    with pytest.raises(FileNotFoundError) as missing:
        asyncio.run(megabytes(paths))
    assert is_file_not_found_error(missing.value, paths)
