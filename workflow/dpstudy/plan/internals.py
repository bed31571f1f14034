"""Every use of Snakemake's internals, beyond its public interface.

Where Snakemake has no setting for something, its own objects and files are used: the jobs that a run is about to start,
its limit of jobs a second, a resource of rules that were parsed, the sizes of inputs, and its records of what made each
file. Tried with the versions in TRIED; a test fails on another.

The records are kept within `results`, so that they travel with it. Snakemake looks for them in .snakemake/metadata,
which is made a link. Without a record it knows nothing of a file but its time, and would take it for current whatever
the config says.
"""

import contextlib
import os
import shutil
from base64 import urlsafe_b64encode
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dpstudy.core.errors import StudyError

TRIED = ("9.27.1",)
RECORDS = "results/records"
_SNAKEMAKE = ".snakemake"
SCRIPTS = f"{_SNAKEMAKE}/scripts/"  # where Snakemake writes the scripts of jobs that run
_LINK = f"{_SNAKEMAKE}/metadata"
_DATED = ".snakemake_timestamp"  # has the time of a folder that a rule made; release/verify.py, alone, knows it too
_LONG_AGO = 86_400  # seconds; at 0 Snakemake takes a file for one without a time
_AWAY = 2.0  # seconds; some disks keep times to two
_DATABASE = f"{_SNAKEMAKE}/metadata.db"  # of `--persistence-backend db`
_DEFAULT_RATE = (100, 1)  # jobs a time span in seconds


@dataclass(frozen=True)
class Job:
    """A job of a Snakemake run.

    Attributes:
        rule: its name.
        wildcards: name -> value.
        inputs: files that it reads.
        outputs: key -> file that it writes, of those with a key.
        writes: all files that it writes.
        script: of its rule, or "".
        seeds: that it trains, where its rule says so.
    """

    rule: str
    wildcards: Mapping[str, str]
    inputs: Sequence[str]
    outputs: Mapping[str, str]
    writes: Sequence[str]
    script: str
    seeds: Sequence[int]


def is_module(workflow) -> bool:
    """Whether the rules are loaded as a module of another workflow."""
    return not workflow.modifier.is_main_snakefile()


def due_jobs(workflow) -> list[Job]:
    """The jobs that a run is about to start, by rule and wildcards: Snakemake's order differs from run to run."""
    jobs = [_job(job) for job in workflow.dag.needrun_jobs()]
    return sorted(jobs, key=lambda job: (job.rule, *map(_number_or_text, job.wildcards.values())))


def _number_or_text(value: str) -> tuple[bool, float, str]:
    """What sorts numbers by size, before other texts."""
    try:
        return False, float(value), ""
    except ValueError:
        return True, 0.0, value


def all_jobs(workflow) -> list[Job]:
    """Every job behind the requested targets, including those that need not run."""
    return [_job(job) for job in workflow.dag.jobs]


def _job(job) -> Job:
    return Job(
        job.rule.name,
        job.wildcards_dict,
        list(map(str, job.input)),
        {key: str(path) for key, path in job.output.items()},
        list(map(str, job.output)),
        str(job.rule.script or ""),
        list((getattr(job.params, "request", None) or {}).get("seeds", [])),
    )


def readings(workflow) -> list[list]:
    """Sorted [rule, rule that reads its output, count] of a run, without the rule `all`."""
    dependencies = workflow.dag.dependencies
    edges = Counter((source.rule.name, job.rule.name) for job in workflow.dag.jobs for source in dependencies[job])
    return [[*edge, count] for edge, count in sorted(edges.items()) if "all" not in edge]


def unthrottle(workflow) -> None:
    """Lift Snakemake's default limit of 100 jobs a second; a limit set by the user is kept.

    With a limit, each look at the ready jobs makes another one a second later, for ever: as many every second as jobs
    have ended (Snakemake 9.27). After a few hundred jobs that took a core.
    """
    limiter = workflow.scheduler.job_rate_limiter
    if limiter and (limiter.max_jobs, limiter.timespan) == _DEFAULT_RATE:
        workflow.scheduler.job_rate_limiter = None


def keep_going(workflow) -> None:
    """Continue with other jobs after one fails, as `--keep-going` does."""
    workflow.scheduler.keepgoing = True


def tell_when_planned(workflow, look: Callable[[], str]) -> None:
    """Print the result of `look` at the end of a dry run, which runs no hooks; "" prints nothing."""
    from snakemake.logging import logger

    build, end, refusals = workflow._build_dag, workflow.log_provenance_info, []

    def built():
        build()
        if workflow.dryrun and any(True for _ in workflow.dag.needrun_jobs()):
            refusals.append(look())

    def ended():
        end()
        for sentence in filter(None, refusals):
            logger.warning(f"dpstudy: a run would stop at once: {sentence}")

    workflow._build_dag, workflow.log_provenance_info = built, ended


def refuse_other_reports(workflow) -> None:
    """Refuse `--report` when results are out of date: Snakemake would pack another study's report.

    Raises:
        WorkflowError: when the report is to be made.
    """
    if is_module(workflow):  # whose workflow makes the report
        return
    build, report = workflow._build_dag, workflow.create_report
    reporting: list[bool] = []

    def built():
        build()
        if reporting and (due := next(iter(workflow.dag.needrun_jobs()), None)):
            raise WorkflowError(
                f"dpstudy: nothing was packed: not all results are this study's as it stands (a run would make "
                f"{', '.join(map(str, due.output)) or due.rule.name}); run it first"
            )

    def reported(*arguments, **named):
        reporting.append(True)
        report(*arguments, **named)

    from snakemake.exceptions import WorkflowError

    workflow._build_dag, workflow.create_report = built, reported


def run_here(workflow, names: Iterable[str]) -> None:
    """On a cluster, run the jobs of some rules where Snakemake itself runs.

    Each takes one of the resource `here`, which the profile has as many of as Snakemake runs such jobs at a time: a
    thousand that wait for their turn would keep `jobs` from being submitted.

    Raises:
        StudyError: there is no such rule.
    """
    known = [rule.name for rule in workflow.rules]
    for name in names:
        if name not in known:
            raise StudyError(f"DPSTUDY_HERE names {name!r}, and the rules are {', '.join(known)}")
        workflow.localrules(name)
        workflow.get_rule(name).resources["here"] = 1


def look_up_sizes() -> None:
    """Make `input.size_mb` read sizes from the disk.

    Snakemake's own runs an event loop, which it cannot while another runs, as it does for `--report`: it leaves such a
    resource unknown, and a RuntimeWarning for each job.
    """
    from snakemake.iocontainers import InputFiles

    original = InputFiles.size_files

    def sizes(self) -> list[int]:
        if any(getattr(path, "is_storage", False) for path in self):
            return original.fget(self)
        return [os.path.getsize(path) for path in self]

    InputFiles.size_files = property(sizes)


def keep_records() -> None:
    """Make Snakemake keep its metadata records in RECORDS, and move earlier ones there.

    Where both are there, those of the results hold: they came with them. Where nothing can be written, all stays as
    it is.
    """
    if os.path.islink(_LINK) and os.path.isdir(_LINK):
        return
    try:
        os.makedirs(f"{_SNAKEMAKE}/incomplete", exist_ok=True)  # without it Snakemake takes the records for old ones
        if os.path.isdir(_LINK) and not os.path.islink(_LINK):
            if os.path.isdir(RECORDS):
                shutil.rmtree(_LINK)
            else:
                os.makedirs(os.path.dirname(RECORDS), exist_ok=True)
                shutil.move(_LINK, RECORDS)
        os.makedirs(RECORDS, exist_ok=True)
        if not os.path.islink(_LINK):
            os.symlink(os.path.relpath(RECORDS, _SNAKEMAKE), _LINK)
    except OSError:
        return


def record_own_jobs() -> None:
    """Make a job on a cluster record what made its outputs; called within the job.

    Else only the run that sent it does, and what a job makes after its run died would be made once more. Snakemake does
    so where it sends all jobs at once (`immediate_submit`) and ends before they do.
    """
    from snakemake import persistence

    kind = getattr(persistence, "PersistenceBase", None)  # another version of Snakemake: jobs are made once more
    if kind is None:
        return
    finished = kind.finished

    async def recorded(self, job):
        settings = self.dag.workflow.remote_execution_settings
        before, settings.immediate_submit = settings.immediate_submit, True
        try:
            await finished(self, job)
        finally:
            settings.immediate_submit = before

    kind.finished = recorded


def unrecorded(paths: Iterable[str]) -> list[str]:
    """The existing files without a record of what made them.

    A file that Snakemake knows to be half-made is not among them: it is made anew anyway.
    """
    if os.path.exists(_DATABASE) or not os.path.isdir(_LINK):
        return []
    known = {*os.listdir(_LINK), *os.listdir(f"{_SNAKEMAKE}/incomplete")}
    longest = os.pathconf(_LINK, "PC_NAME_MAX") - 1
    return [
        path
        for path in paths
        if (name := urlsafe_b64encode(path.encode()).decode()) not in known
        and os.path.exists(path)
        and not (len(name) > longest and _has_long_record(name, longest))
    ]


def copied_without_times(workflow) -> list[str]:
    """One output of each due job whose files seem to have been copied without modification times.

    Such a job is due because an input is newer than an output, while both have another time than when they were made.
    Forced jobs are not listed.
    """

    def moved(path) -> bool:
        dated = f"{path}/{_DATED}" if os.path.isdir(path) else path
        record = workflow.persistence.metadata(path) if os.path.exists(dated) else None
        return bool(record and record.endtime and abs(os.path.getmtime(dated) - record.endtime) > _AWAY)

    outputs = []
    for job in workflow.dag.needrun_jobs():
        reason = workflow.dag.reason(job)
        if reason.updated_input and not reason.forced:
            outputs += [str(job.output[0])] if all(map(moved, (*reason.updated_input, *job.output))) else []
    return outputs


def _has_long_record(name: str, longest: int) -> bool:
    """Whether a record stands under a name that is cut into folders."""
    parts = [name[start : start + longest] for start in range(0, len(name), longest)]
    parts = ["@" + part for part in parts[:-1]] + parts[-1:]
    return any(Path(folder, *parts).exists() for folder in (_LINK, f"{_SNAKEMAKE}/incomplete"))


def outdate(paths: Iterable[str]) -> list[str]:
    """Set files (and folders of a rule) to an old modification time, so that Snakemake makes them again.

    Returns:
        paths
    """
    paths = list(paths)
    for path in paths:
        dated = f"{path}/{_DATED}" if os.path.isdir(path) else path
        with contextlib.suppress(OSError):  # another user's, which is said before anything runs
            os.utime(dated, (_LONG_AGO, _LONG_AGO))
    return paths
