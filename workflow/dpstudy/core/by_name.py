"""Modules that a config names: readers and extractors. No list of them is kept in code, which everything that is made
would depend on: a new one would make all that others have made stale."""

import importlib
import importlib.util
import pkgutil
from types import ModuleType

from dpstudy.core.errors import StudyError
from dpstudy.core.suggest import suggestion


def opener(package: str, kind: str, name: object) -> ModuleType:
    """The module of a package that has this name and an `open`.

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
