"""Snakemake's hooks: before the first job of a run, after a dry run, and at the end."""

import os
import sys
from pathlib import Path

from dpstudy.core.errors import StudyError
from dpstudy.core.files import write_json
from dpstudy.core.job import name_workflow
from dpstudy.plan import before, internals, paths, targets
from dpstudy.plan.study import load_study
from dpstudy.provenance.imports import read_imports


def read_study(workflow, config: dict) -> dict:
    """The checked study in Snakemake's config, which merges files where several are given: that is told.

    Raises:
        StudyError: the first mistakes in it, with its file.
    """
    name_workflow()
    read_imports(Path(".snakemake/dpstudy-imports.json"))
    files = list(map(str, workflow.configfiles))
    try:
        study = load_study(config, workflow.configfiles)
    except StudyError as error:
        raise StudyError(f"{' '.join(files) or 'config.yaml'}: {error}") from None
    if len(files) > 1:
        merged = "Snakemake merged them into one study, with the data sets, methods and cells of all"
        print(f"dpstudy: {' and '.join(files)}: {merged}; to change one study, write `include:`", file=sys.stderr)
    return study


def when_read(workflow, study: dict) -> None:
    """The hook after rules are read: refuse runs, manage records, and read the environment (docs/cluster.md).

    Raises:
        StudyError: says what is wrong.
    """
    refuse_module(workflow, study)
    mind_records(workflow, study)
    internals.look_up_sizes()
    internals.run_here(workflow, os.environ.get("DPSTUDY_HERE", "").split())
    if (listed := os.environ.get("DPSTUDY_KEPT")) and study["noise"] == "secure":
        before.note_kept(study, listed)  # for workflow/status.py
    internals.refuse_other_reports(workflow)
    internals.tell_when_planned(workflow, lambda: look_ahead(workflow, study))


def refuse_module(workflow, study: dict) -> None:
    """Refuse secure noise in a module of another workflow.

    Of a module Snakemake runs no hooks, and nothing would look after models that are paid for.

    Raises:
        StudyError: it is so.
    """
    if internals.is_module(workflow) and study["noise"] == "secure":
        raise StudyError(
            "nothing was run: noise: secure is for a study that runs by itself, not as a module of another workflow; "
            "run snakemake -s with this workflow's Snakefile, or dpstudy run"
        )


def mind_records(workflow, study: dict) -> None:
    """Keep Snakemake's metadata records within the results, and remake files that have none.

    Snakemake would take such a file for current, whatever the config says.
    """
    if not workflow.is_main_process:
        if workflow.remote_exec:
            internals.record_own_jobs()
        return
    from snakemake.logging import logger

    internals.keep_records()
    if lost := internals.outdate(internals.unrecorded(targets.lasting_files(study))):
        others = f" and {len(lost) - 1:,} other files" if len(lost) > 1 else ""
        logger.warning(
            f"dpstudy: no record says what made {lost[0]}{others}: made anew where it is needed (docs/faq.md)"
        )


def look_before(workflow, study: dict) -> None:
    """The hook before the first job: refuse a run that cannot finish properly, and announce what is about to run.

    Raises:
        StudyError: says what is wrong.
    """
    from snakemake.logging import logger

    internals.unthrottle(workflow)
    due = internals.due_jobs(workflow)
    refusing, warnings = before.check(study, due, workflow.touch, internals.copied_without_times(workflow))
    for warning in warnings:
        logger.warning(f"dpstudy: {warning}")
    if refusing:
        internals.keep_going(workflow)
    jobs = internals.all_jobs(workflow)
    if before.has("build_report", jobs):
        write_json(paths.GRAPH, {"edges": internals.readings(workflow)})
    if "DPSTUDY_EVENTS" in os.environ:
        logger.info(None, extra=before.plan_of(study, jobs, due))


def look_ahead(workflow, study: dict) -> str:
    """The refusal that a run would meet, for a dry run; also written to a file if workflow/status.py asks for it."""
    refused = before.refusal(study, internals.due_jobs(workflow), internals.copied_without_times(workflow))
    if wanted := os.environ.get("DPSTUDY_REFUSED"):
        write_json(wanted, refused)
    return refused[0]


def announce(workflow, study: dict) -> None:
    """Print the results of a finished run."""
    whole = before.has("all", internals.all_jobs(workflow))
    print("\n".join(before.made(study)) if whole else "\nDone.")
