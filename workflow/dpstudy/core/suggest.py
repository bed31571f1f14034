"""'Did you mean ...?' for a name that does not exist."""

import difflib
import os
from collections.abc import Iterable
from pathlib import Path


def suggestion(name: object, allowed: Iterable[str]) -> str:
    """' (did you mean ...?)' where a name of `allowed` is close to `name`, or differs in upper and lower case alone.

    >>> suggestion("epsilon", ["epsilons", "delta"])
    " (did you mean 'epsilons'?)"
    """
    names = [str(value) for value in allowed]
    close = [value for value in names if value.lower() == str(name).lower()]
    close = close or difflib.get_close_matches(str(name), names, 1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def neighbour(path: Path) -> str:
    """' (did you mean ...?)' where a file or folder of a close name lies in the same folder."""
    return suggestion(path.name, sorted(os.listdir(path.parent))) if path.parent.is_dir() else ""
