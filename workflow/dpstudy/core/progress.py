"""Progress of long loops: shown on a terminal, and written to a job's log from time to time."""

import contextlib
import logging
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import TypeVar

T = TypeVar("T")

SHOWN = "DPSTUDY_TERMINAL"  # environment variable: whoever reads our standard error shows lines of it in a terminal
LINE = "  - "  # how such a line begins: no line of a traceback does
ASKS, ANSWERED = "  ? a question at the terminal", "  ? answered"  # lines between which nothing is drawn there
WORKFLOW = "DPSTUDY_WORKFLOW"  # environment variable that a workflow sets for its jobs (dpstudy.core.job)
_LINE_SECONDS = 5.0
_LOG_SECONDS = 60.0  # between two lines in a log, which nobody may be watching

_log = logging.getLogger("dpstudy")


def progress(
    items: Iterable[T],
    what: str,
    total: int | None = None,
    note: Callable[[int], str] | None = None,
    before: int = 0,
) -> Iterator[T]:
    """Iterate over `items` and report the progress of the loop named `what`.

    `note` says more about a loop of which so many items are done. It must not tell of private records. The first
    `before` items were done by an earlier process: passing over them says nothing of how long the others take.

    A job of a workflow shares the terminal with other jobs, and with Snakemake: it writes a line every few seconds,
    since bars would overwrite each other, and a line a minute into its log, which is all that can be seen of a job on
    another machine. Otherwise there is a bar.
    """
    terminal, job = sys.stderr.isatty(), WORKFLOW in os.environ
    outlets: dict[Callable[[str], None], float] = {_log.info: _LOG_SECONDS} if job else {}
    if SHOWN in os.environ or (job and terminal):
        outlets[_print] = _LINE_SECONDS
    if outlets:
        yield from _with_lines(items, what, total or _length(items), note, before, outlets)
    elif not terminal:
        yield from items
    else:
        from tqdm import tqdm

        bar = tqdm(items, desc=what, total=total, leave=False, mininterval=0.5, file=sys.stderr)
        last_time = time.monotonic()
        for done, item in enumerate(bar):
            if note and done and time.monotonic() - last_time >= _LINE_SECONDS:
                last_time = time.monotonic()
                bar.set_postfix_str(note(done))
            yield item


def _length(items: Iterable) -> int | None:
    return len(items) if isinstance(items, Sized) else None


def _print(line: str) -> None:
    with contextlib.suppress(OSError):  # the program that shows progress may have ended, while the work goes on
        print(f"{LINE}{line}", file=sys.stderr, flush=True)


def _with_lines(
    items: Iterable[T],
    what: str,
    total: int | None,
    note: Callable[[int], str] | None,
    before: int,
    outlets: dict[Callable[[str], None], float],
) -> Iterator[T]:
    """Hand on the items, and tell each outlet how far they are every so many seconds."""
    started = time.monotonic()
    last_times = dict.fromkeys(outlets, started)
    for done, item in enumerate(items):
        now = time.monotonic()
        if done <= before:
            started = now
        elif due := [tell for tell, seconds in outlets.items() if now - last_times[tell] >= seconds]:
            more = f", {note(done)}" if note else ""
            for tell in due:
                last_times[tell] = now
                tell(f"{what}: {_how_far(done, total, (now - started) / (done - before))}{more}")
        yield item


def _how_far(done: int, total: int | None, seconds_each: float) -> str:
    if not total:
        return f"{done} done"
    return f"{100 * done // total}% ({done} of {total}), {seconds_each * (total - done):.0f} s left"
