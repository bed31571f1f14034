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
        names = [module_info.name for module_info in pkgutil.iter_modules(importlib.import_module(package).__path__)]
        existing = sorted(other for other in names if _find(package, other))
        raise StudyError(f"{kind} {name!r} does not exist{suggestion(name, existing)}; there are {', '.join(existing)}")
    return module


def _find(package: str, name: object) -> ModuleType | None:
    path = f"{package}.{name}"
    if not str(name).isidentifier() or importlib.util.find_spec(path) is None:
        return None
    module = importlib.import_module(path)
    return module if hasattr(module, "open") else None
