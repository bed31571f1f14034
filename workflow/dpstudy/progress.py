"""Progress of long loops: shown in a terminal, silent elsewhere."""

import os
import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

WORKFLOW = "DPSTUDY_WORKFLOW"  # environment variable that a workflow sets for its jobs (dpstudy.job)
_LINE_SECONDS = 5.0


def progress(items: Iterable[T], what: str, total: int | None = None) -> Iterator[T]:
    """Iterate over `items`; where standard error is a terminal, show how far the loop named `what` is.

    A job of a workflow shares the terminal with other jobs, and with Snakemake: it writes a line every few seconds,
    since bars would overwrite each other. Otherwise there is a bar.
    """
    if not sys.stderr.isatty():
        yield from items
    elif WORKFLOW in os.environ:
        yield from _with_lines(items, what, total or _length(items))
    else:
        from tqdm import tqdm

        yield from tqdm(items, desc=what, total=total, leave=False, mininterval=0.5, file=sys.stderr)


def _length(items: Iterable) -> int | None:
    return len(items) if hasattr(items, "__len__") else None


def _with_lines(items: Iterable[T], what: str, total: int | None) -> Iterator[T]:
    started = said = time.monotonic()
    for done, item in enumerate(items):
        now = time.monotonic()
        if now - said >= _LINE_SECONDS and done:
            said = now
            print(f"  {what}: {_how_far(done, total, now - started)}", file=sys.stderr)
        yield item


def _how_far(done: int, total: int | None, seconds: float) -> str:
    if not total:
        return f"{done} done"
    return f"{100 * done // total}% ({done} of {total}), {seconds * (total - done) / done:.0f} s left"
