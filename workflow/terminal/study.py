"""The state of a running study: jobs and cells done, running and failed, and an estimate of the time left."""

import os
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from terminal.ended import ending
from terminal.failures import not_made, notices, refusal, sentences
from terminal.names import cell_of, job_name, kind_of

NOTHING_TO_DO = "Nothing to be done"
RESTART = re.compile(r"Trying to restart job (\d+)")
# What Snakemake says beside the event of the same failure; and a warning against what profiles/slurm/controller.sh does
# on purpose, which tests/slurm proves to work.
SAID_OTHERWISE = re.compile(
    r"CalledProcessError|At least one job did not complete successfully|Exiting because a job execution failed"
    r"|You are running snakemake in a SLURM job context"
)
# Where in the rules a sentence was raised, above and below it; DPSTUDY_VERBOSE=1 shows it.
RAISED = re.compile(r'WorkflowError in file ".*", line \d+:\n')
RAISED_IN = re.compile(r'(\n  File ".*", line \d+, in .*)+$')


@dataclass
class Job:
    """One job that has started."""

    name: str
    kind: tuple[str, str]  # jobs of a kind take about as long
    cell: str  # that it trains, gathers or scores, if any
    ends_cell: bool
    logs: list[str]
    started: float
    ended: str = ""  # by whom, and the remedy, where SLURM ended it


@dataclass
class Study:
    """The state of a run, updated from Snakemake's events; all times are seconds of one clock, read by the caller."""

    began: float
    name: str = ""
    jobs: int = 0  # of this run
    jobs_done: int = 0
    cells: int = 0  # asked for, those that were there before included
    cells_done: int = 0
    remote: bool = False  # jobs are submitted to a cluster, where they may wait
    stopping: bool = False  # on somebody's request
    refused: str = ""  # why the workflow did not begin
    unknown: str = ""  # what was asked for, and no rule makes
    last_cell: str = ""
    running: dict[int, Job] = field(default_factory=dict)
    failed: dict[int, Job] = field(default_factory=dict)
    _warned: set[str] = field(default_factory=set)
    _why: dict[str, str] = field(default_factory=dict)  # why a job failed, by its name
    _first_job: float | None = None
    _due: Counter = field(default_factory=Counter)  # jobs not yet done, by kind
    _took: dict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))

    def hear(self, event: dict, now: float) -> list[str]:
        """Update the state with one event of the logger plugin; returns lines to show now."""
        happened = event["event"]
        if happened == "said":
            return self._said(event["level"], event["text"])
        if happened == "run_info":
            self.jobs = event["stats"]["total"]
        elif happened == "resources_info":
            self.remote = self.remote or event["nodes"] is not None
        elif happened == "plan":
            self.name, self.cells = event["study"], event["cells"]
            self._due.update(kind_of(rule, wildcards) for rule, wildcards, _ in event["due"])
            self.cells_done = self.cells - sum(cell for *_, cell in event["due"])
            return [f"study {self.name}: {self.cells_done:,} of {self.cells:,} cells done, jobs to run: {self.jobs:,}"]
        elif happened == "job_info":
            self._start(event, now)
        elif happened == "job_finished":
            return self._finish(event["job_id"], now)
        elif happened == "job_error" and event["jobid"] in self.running:
            return self._fail(event)
        return []

    def _start(self, event: dict, now: float) -> None:
        self._first_job = now if self._first_job is None else self._first_job
        rule, wildcards, logs = event["rule_name"], event["wildcards"] or {}, event["log"] or []
        name = job_name(rule, wildcards, logs)
        job = Job(name, kind_of(rule, wildcards), *cell_of(event["output"] or []), logs, now)
        self.running[event["jobid"]] = job
        self.failed.pop(event["jobid"], None)

    def _finish(self, number: int, now: float) -> list[str]:
        self.jobs_done += 1
        job = self.running.pop(number, None)
        if job is None:
            return []
        self._took[job.kind].append(now - job.started)
        self._due[job.kind] -= 1
        if job.ends_cell:
            self.cells_done += 1
            self.last_cell = job.cell
        return [f"note: {job.name}: {sentence}" for log in job.logs for sentence in notices(log)]

    def _fail(self, event: dict) -> list[str]:
        job = self.running.pop(event["jobid"])
        if self.stopping:  # the job was interrupted, and is not at fault
            return []
        job.logs = [log.removeprefix(f"{os.getcwd()}/") for log in event["log"] or job.logs]
        self.failed[event["jobid"]] = job
        self._due[job.kind] -= 1
        why = [sentence for log in job.logs for sentence in sentences(log)]
        if not why and (outcome := ending(event["rule_msg"] or "", job.logs)):
            why, job.ended = [outcome[0]], "; ".join(outcome)
        reason = why[-1] if why else "see " + ", ".join(job.logs)
        again = self._why.get(job.name) == reason
        self._why[job.name] = reason
        return [f"failed again, for the same reason: {job.name}" if again else f"failed: {job.name}: {reason}"]

    def _said(self, level: str, text: str) -> list[str]:
        if level == "INFO":
            if again := RESTART.match(text):
                job = self.failed.pop(int(again[1]), None)
                if job:
                    self._due[job.kind] += 1
                    return [f"tried again: {job.name}"]
            return [text] if text.startswith(NOTHING_TO_DO) else []
        if level == "ERROR" and not self.name and (refused := refusal(text)):  # printed at the end
            self.refused = refused
            return []
        if level == "ERROR" and not self.name and (unknown := not_made(text)):  # printed at the end, too
            self.unknown = unknown
            return []
        if level == "DEBUG" or SAID_OTHERWISE.search(text) or (level == "WARNING" and text in self._warned):
            return []
        self._warned.add(text)  # once, although an executor may repeat it for each job
        return [_without_place(text.strip())]

    def cells_running(self) -> int:
        """The number of cells that a running job trains, gathers or scores."""
        return len({job.cell for job in self.running.values()} - {""})

    def cells_failed(self) -> int:
        """The number of cells with a failed job; cells that wait for another cell's failed job do not count."""
        return len({job.cell for job in self.failed.values()} - {""})

    def seconds_left(self, now: float) -> tuple[float, bool] | None:
        """Estimated seconds left, and whether they cover all remaining jobs; None where there is no estimate.

        Jobs of a kind are taken to last as long as those of it that ended, and as many to run at once as until now. Of
        a kind, and a rule, that no job has finished nothing is known: the estimate is then of the others only, and
        there is none where they are fewer.
        """
        by_rule = defaultdict(list)
        for (rule, _), seconds in self._took.items():
            by_rule[rule] += seconds
        work, known, unknown = 0.0, 0, 0
        for kind, count in self._due.items():
            seconds = self._took.get(kind) or by_rule.get(kind[0])
            if seconds:
                work += count * sum(seconds) / len(seconds)
                known += count
            else:
                unknown += count
        if not work or unknown > known or self._first_job is None:
            return None
        busy = sum(map(sum, self._took.values()))
        for job in self.running.values():
            busy += now - job.started
            seconds = self._took.get(job.kind) or by_rule.get(job.kind[0])
            if seconds:
                work -= min(now - job.started, sum(seconds) / len(seconds))
        at_once = max(1.0, busy / max(now - self._first_job, 1e-3))
        return max(0.0, work) / at_once, not unknown


def _without_place(text: str) -> str:
    """A sentence of the workflow without the place in the rules that raised it; other text unchanged."""
    return RAISED_IN.sub("", text[match.end() :]) if (match := RAISED.match(text)) else text
