"""Methods of other packages, which Python finds by their entry points."""

import functools
import importlib.metadata
import sys
from collections.abc import Sequence

ENTRY_POINTS = "dpstudy.methods"
_named: list[importlib.metadata.EntryPoint] = []  # modules of packages that are not installed


def entry_points() -> list[importlib.metadata.EntryPoint]:
    """Methods of other packages: those that are installed, and those that `name_module` named."""
    return [*_installed(tuple(sys.path)), *_named]


@functools.cache
def _installed(path: Sequence[str]) -> list[importlib.metadata.EntryPoint]:
    """Those of the packages below sys.path, which is read once: it takes 7 ms, and every entry of a study asks."""
    return list(importlib.metadata.entry_points(group=ENTRY_POINTS))


def name_module(name: str, path: str) -> None:
    """Let the module at the import path `path` be a method of this process called `name`."""
    _named.append(importlib.metadata.EntryPoint(name, path, ENTRY_POINTS))
