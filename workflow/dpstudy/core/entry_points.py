"""Methods of other packages, which Python finds by their entry points."""

import importlib.metadata

ENTRY_POINTS = "dpstudy.methods"
_named: list[importlib.metadata.EntryPoint] = []  # modules of packages that are not installed


def entry_points() -> list[importlib.metadata.EntryPoint]:
    """Methods of other packages: those that are installed, and those that `name_module` named."""
    return [*importlib.metadata.entry_points(group=ENTRY_POINTS), *_named]


def name_module(name: str, path: str) -> None:
    """Let the module at the import path `path` be a method of this process called `name`."""
    _named.append(importlib.metadata.EntryPoint(name, path, ENTRY_POINTS))
