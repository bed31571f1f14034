"""Measuring by alternating repeats, and printing what was measured."""

import statistics
import time
from collections.abc import Callable, Sequence


def alternate(
    tasks: dict[str, Callable[[], object]], repeats: int, clock: Callable[[], float] = time.process_time
) -> dict[str, list[float]]:
    """Seconds of each task, `repeats` times, one task after the other so that all meet the same disturbances.

    Every task runs once before, unmeasured. `clock` is CPU time of this process unless said.
    """
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for repeat in range(repeats + 1):
        for name, task in tasks.items():
            started = clock()
            task()
            if repeat:
                seconds[name].append(clock() - started)
    return seconds


def medians(seconds: dict[str, list[float]]) -> dict[str, float]:
    """The median of each task's seconds."""
    return {name: statistics.median(values) for name, values in seconds.items()}


def title(text: str) -> None:
    """Print a heading."""
    print(f"{text}\n{'-' * len(text)}", flush=True)


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print rows under a header, the first column flush left and the others flush right."""
    text = [[str(cell) for cell in row] for row in (header, *rows)]
    widths = [max(len(row[column]) for row in text) for column in range(len(header))]
    for row in text:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        print("  ".join(cells).rstrip(), flush=True)


def verdict(met: bool) -> str:
    """How a goal fared, in a word."""
    return "met" if met else "MISSED"
