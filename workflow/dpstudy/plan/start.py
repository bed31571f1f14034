"""What is done before the first job of a run, where it is only planned, and when it has ended: Snakemake's hooks."""

import os
from pathlib import Path

from dpstudy.core.errors import StudyError
from dpstudy.core.files import write_json
from dpstudy.core.job import name_workflow
from dpstudy.plan import before, internals, paths, targets
from dpstudy.plan.study import load_study
from dpstudy.provenance.imports import read_imports


def read_study(workflow, config: dict) -> dict:
    """The checked study that Snakemake's config describes.

    Raises:
        StudyError: the first mistakes in it, with its file.
    """
    name_workflow()
    read_imports(Path(".snakemake/dpstudy-imports.json"))
    try:
        return load_study(config, workflow.configfiles)
    except StudyError as error:
        raise StudyError(f"{' '.join(map(str, workflow.configfiles)) or 'config.yaml'}: {error}") from None


def when_read(workflow, study: dict) -> None:
    """Once the rules are read: refuse what may not run, mind the records, and heed the environment (docs/cluster.md).

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
    """Refuse secure noise where another workflow has this one as a module: of a module Snakemake runs no hooks, and
    nothing would look after models that are paid for.

    Raises:
        StudyError: it is so.
    """
    if internals.is_module(workflow) and study["noise"] == "secure":
        raise StudyError(
            "nothing was run: noise: secure is for a study that runs by itself, not as a module of another workflow; "
            "run snakemake -s with this workflow's Snakefile, or dpstudy run"
        )


def mind_records(workflow, study: dict) -> None:
    """Have Snakemake's records of what made each file lie within the results, and make anew what none of them tells of:
    Snakemake would take it for current, whatever the config says."""
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
    """Refuse what cannot end well before the first job, and tell who listens what is about to run.

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
    """What a run would refuse, told where it is only planned; workflow/status.py asks for it in a file."""
    refused = before.refusal(study, internals.due_jobs(workflow), internals.copied_without_times(workflow))
    if wanted := os.environ.get("DPSTUDY_REFUSED"):
        write_json(wanted, refused)
    return refused[0]


def announce(workflow, study: dict) -> None:
    """Name what the study made; who asked for single targets knows their names."""
    whole = before.has("all", internals.all_jobs(workflow))
    print("\n".join(before.made(study)) if whole else "\nDone.")
