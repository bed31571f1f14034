"""Methods from other packages, found by their entry points."""

import functools
import importlib.metadata
import sys
from collections.abc import Sequence

ENTRY_POINTS = "dpstudy.methods"
_named: list[importlib.metadata.EntryPoint] = []  # modules of packages that are not installed


def entry_points() -> list[importlib.metadata.EntryPoint]:
    """The entry points of methods from other packages: installed ones, and those registered by `name_module`."""
    return [*_installed(tuple(sys.path)), *_named]


@functools.cache
def _installed(path: Sequence[str]) -> list[importlib.metadata.EntryPoint]:
    """Those of the packages below sys.path, which is read once: it takes 7 ms, and every entry of a study asks."""
    return list(importlib.metadata.entry_points(group=ENTRY_POINTS))


def name_module(name: str, path: str) -> None:
    """Register the module at the import path `path` as the method `name`, in this process."""
    _named.append(importlib.metadata.EntryPoint(name, path, ENTRY_POINTS))
