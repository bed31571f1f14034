"""Progress of long loops: shown in a terminal, silent elsewhere."""

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import TypeVar

T = TypeVar("T")

SHOWN = "DPSTUDY_TERMINAL"  # environment variable: whoever reads our standard error shows lines of it in a terminal
LINE = "  "  # how such a line begins
WORKFLOW = "DPSTUDY_WORKFLOW"  # environment variable that a workflow sets for its jobs (dpstudy.job)
_LINE_SECONDS = 5.0


def progress(
    items: Iterable[T], what: str, total: int | None = None, note: Callable[[int], str] | None = None
) -> Iterator[T]:
    """Iterate over `items`; where standard error is a terminal, show how far the loop named `what` is.

    `note` says more about a loop of which so many items are done. It must not tell of private records.

    A job of a workflow shares the terminal with other jobs, and with Snakemake: it writes a line every few seconds,
    since bars would overwrite each other. Otherwise there is a bar.
    """
    if SHOWN in os.environ:
        yield from _with_lines(items, what, total or _length(items), note)
    elif not sys.stderr.isatty():
        yield from items
    elif WORKFLOW in os.environ:
        yield from _with_lines(items, what, total or _length(items), note)
    else:
        from tqdm import tqdm

        bar = tqdm(items, desc=what, total=total, leave=False, mininterval=0.5, file=sys.stderr)
        said = time.monotonic()
        for done, item in enumerate(bar):
            if note and done and time.monotonic() - said >= _LINE_SECONDS:
                said = time.monotonic()
                bar.set_postfix_str(note(done))
            yield item


def _length(items: Iterable) -> int | None:
    return len(items) if isinstance(items, Sized) else None


def _with_lines(items: Iterable[T], what: str, total: int | None, note: Callable[[int], str] | None) -> Iterator[T]:
    started = said = time.monotonic()
    for done, item in enumerate(items):
        now = time.monotonic()
        if now - said >= _LINE_SECONDS and done:
            said = now
            more = f", {note(done)}" if note else ""
            with contextlib.suppress(OSError):  # whoever watched may be gone, which is no reason to lose the work
                print(f"{LINE}{what}: {_how_far(done, total, now - started)}{more}", file=sys.stderr, flush=True)
        yield item


def _how_far(done: int, total: int | None, seconds: float) -> str:
    if not total:
        return f"{done} done"
    return f"{100 * done // total}% ({done} of {total}), {seconds * (total - done) / done:.0f} s left"
