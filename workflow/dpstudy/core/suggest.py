"""Suggestions ("did you mean ...?") for a name that does not exist."""

import difflib
import os
from collections.abc import Iterable
from pathlib import Path


def suggestion(name: object, allowed: Iterable[str]) -> str:
    """The text ' (did you mean ...?)' if a name in `allowed` is close to `name` or differs only in case; else ''.

    >>> suggestion("epsilon", ["epsilons", "delta"])
    " (did you mean 'epsilons'?)"
    """
    names = [str(value) for value in allowed]
    close = [value for value in names if value.lower() == str(name).lower()]
    close = close or difflib.get_close_matches(str(name), names, 1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def neighbour(path: Path) -> str:
    """The text ' (did you mean ...?)' if the same folder has a file or folder of a similar name; else ''."""
    return suggestion(path.name, sorted(os.listdir(path.parent))) if path.parent.is_dir() else ""
