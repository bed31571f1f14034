"""A limit on the size of a config, since a few lines of YAML can expand to any number of values."""

import itertools
from collections.abc import Iterable

from dpstudy.core.errors import StudyError

_DEEPEST, _MOST = 40, 100_000


def check_size(raw: object) -> None:
    """Refuse a config that expands to too many values, as one with a recursive alias does.

    Raises:
        StudyError: it holds too many values, or nests them too deep.
    """
    level, count = [raw], 0
    for _ in range(_DEEPEST):
        below = itertools.chain.from_iterable(map(_children, level))
        level = list(itertools.islice(below, _MOST + 1 - count))
        count += len(level)
        if not level:
            return
        if count > _MOST:
            break
    raise StudyError(
        f"the config: more than {_MOST} values, or nested more than {_DEEPEST} deep; look for an alias (*name) that "
        "stands within what it repeats"
    )


def _children(value: object) -> Iterable:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
