"""Progress bars for long loops: shown in a terminal, silent elsewhere."""

import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def progress(items: Iterable[T], what: str, total: int | None = None) -> Iterator[T]:
    """Iterate over `items`; where standard error is a terminal, show a bar named `what` with its ETA."""
    if not sys.stderr.isatty():
        yield from items
        return
    from tqdm import tqdm

    yield from tqdm(items, desc=what, total=total, leave=False, mininterval=0.5, file=sys.stderr)
