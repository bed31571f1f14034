"""The progress of a study as plain lines with the time of day, for logs on a cluster or a test server."""

import sys
import time

from terminal.names import about
from terminal.study import Study

QUIET_SECONDS = 30.0  # between two lines of progress
WAITING_SECONDS = 60.0, 600.0  # while no job ends: at first, at most


class Lines:
    """A view that prints one line of progress at intervals.

    It is printed when jobs have ended, at most one in 30 seconds; while none ends, after one minute, two more, four
    more, and then every ten minutes.
    """

    def __init__(self, study: Study):
        self.study = study
        self._told = study.began
        self._done = 0
        self._patience = WAITING_SECONDS[0]

    def __enter__(self) -> "Lines":
        return self

    def __exit__(self, *_) -> None:
        if self._done < self.study.jobs_done < self.study.jobs:  # when all are done, the study's final message says so
            self.say(self.progress(time.monotonic()))

    def say(self, line: str) -> None:
        """Print a line now."""
        print(f"{time.strftime('%Y-%m-%d %H:%M:%S')}  {line}", file=sys.stderr, flush=True)

    def pass_on(self, line: str) -> None:
        """Print output of Snakemake or a job, unchanged."""
        print(line, file=sys.stderr, flush=True)

    def pause(self, paused: bool) -> None:
        """Do nothing: printed lines need not make room for a question."""

    def refresh(self, now: float, note: str = "") -> None:
        """Print the study's progress, if a line is due."""
        waited, more = now - self._told, self.study.jobs_done > self._done
        if self.study.jobs and waited >= (QUIET_SECONDS if more else self._patience):
            self._patience = WAITING_SECONDS[0] if more else min(2 * self._patience, WAITING_SECONDS[1])
            self._told, self._done = now, self.study.jobs_done
            self.say(self.progress(now))

    def progress(self, now: float) -> str:
        """The numbers of cells and jobs done, running and failed, and the estimated time left."""
        study = self.study
        parts = [f"jobs {study.jobs_done} of {study.jobs} done", *counts(study, len(study.running), len(study.failed))]
        if study.cells:
            cells = [f"cells {study.cells_done} of {study.cells} done"]
            parts = [*cells, *counts(study, 0, study.cells_failed()), *parts]  # running is counted for jobs only
        if study.last_cell:
            parts.append(f"last cell {study.last_cell}")
        return ", ".join(parts + rest(study, now))


def counts(study: Study, running: int, failed: int) -> list[str]:
    """The numbers of running and of failed jobs or cells as text, without those that are zero."""
    word = "submitted" if study.remote else "running"
    return [f"{count} {what}" for count, what in ((running, word), (failed, "failed")) if count]


def rest(study: Study, now: float) -> list[str]:
    """The estimated time left as text; nothing where it cannot be estimated."""
    left = study.seconds_left(now)
    if left is None or study.stopping or study.jobs_done == study.jobs:
        return []
    seconds, known = left
    return [f"{'about' if known else 'more than'} {about(seconds)} left"]
