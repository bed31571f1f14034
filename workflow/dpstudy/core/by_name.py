"""Finding the readers and extractors that a config names.

There is no list of them in code: everything would depend on it, so that a new one would make all earlier results stale.
"""

import importlib
import importlib.util
import pkgutil
from types import ModuleType

from dpstudy.core.errors import StudyError
from dpstudy.core.suggest import suggestion


def opener(package: str, kind: str, name: object) -> ModuleType:
    """The module of this name in a package; it has a function `open`.

    Args:
        kind: what such a module is called, for the message.

    Raises:
        StudyError: there is none.

    >>> opener("dpstudy.features", "extractor", "pixels").__name__
    'dpstudy.features.pixels'
    """
    module = _find(package, name)
    if module is None:
        names = [found.name for found in pkgutil.iter_modules(importlib.import_module(package).__path__)]
        there = sorted(other for other in names if _find(package, other))
        raise StudyError(f"{kind} {name!r} does not exist{suggestion(name, there)}; there are {', '.join(there)}")
    return module


def _find(package: str, name: object) -> ModuleType | None:
    path = f"{package}.{name}"
    if not str(name).isidentifier() or importlib.util.find_spec(path) is None:
        return None
    module = importlib.import_module(path)
    return module if hasattr(module, "open") else None
