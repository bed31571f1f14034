"""Snakemake's logger plugin `dpstudy`: what happens in a run, as lines of JSON for workflow/run.py, which shows it.

Snakemake finds it by its name on PYTHONPATH, and uses it only where `--logger dpstudy` is given.
"""

import contextlib
import json
import logging
import os

from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

CHANNEL = "DPSTUDY_EVENTS"  # environment variable: the file descriptor that run.py reads from
PLAN = "plan"  # an event of our own, from the Snakefile: the jobs that are due
# What is told of each event. Inputs and resources are not: they are long, and not all are text.
TOLD = {
    PLAN: ("study", "cells", "due"),
    LogEvent.RUN_INFO: ("stats",),
    LogEvent.RESOURCES_INFO: ("nodes",),
    LogEvent.JOB_INFO: ("jobid", "rule_name", "wildcards", "output", "log"),
    LogEvent.JOB_FINISHED: ("job_id",),
    LogEvent.JOB_ERROR: ("jobid", "log", "rule_msg"),
}
SAID = "said"  # any other message, with its level


class LogHandler(LogHandlerBase):
    """Write each event to the channel as one line of JSON."""

    def __post_init__(self) -> None:
        if CHANNEL not in os.environ:
            raise WorkflowError("--logger dpstudy works inside workflow/run.py alone; leave it away")
        descriptor = int(os.environ[CHANNEL])
        os.set_inheritable(descriptor, False)
        self._channel = open(descriptor, "w", encoding="utf-8")

    def emit(self, record: logging.LogRecord) -> None:
        """Hand on a record; where nobody reads any more, the run goes on unseen."""
        event = getattr(record, "event", None)
        if event in TOLD:
            message = {name: getattr(record, name, None) for name in TOLD[event]} | {"event": str(event)}
        elif event in (None, LogEvent.ERROR):
            message = {"event": SAID, "level": record.levelname, "text": record.getMessage()}
        else:
            return
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps(message, default=str), file=self._channel, flush=True)

    @property
    def writes_to_stream(self) -> bool:
        """True: Snakemake then writes nothing itself."""
        return True

    @property
    def writes_to_file(self) -> bool:
        """False: Snakemake keeps its log in .snakemake/log beside this."""
        return False

    @property
    def has_filter(self) -> bool:
        """True: all events are told, also what --quiet leaves out."""
        return True

    @property
    def has_formatter(self) -> bool:
        """True: nothing is formatted here."""
        return True

    @property
    def needs_rulegraph(self) -> bool:
        """False."""
        return False
