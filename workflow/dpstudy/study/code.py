"""Which files of the library a piece of code runs on: what a rule declares as input, so that an edit reruns it.

Found by reading import statements, wherever in a file they stand. Modules chosen by name at run time (methods,
readers, extractors) are given as further starting points.
"""

import ast
import functools
from collections.abc import Iterable
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
_ROOT = PACKAGE.parent


def closure(*starts: str) -> list[str]:
    """The files that the scripts (paths) and modules (dotted names) in `starts` import from the library, sorted.

    Scripts themselves are included. Paths are relative to the current folder where they lie below it.
    """
    files: set[Path] = set()
    for start in starts:
        path = Path(start)
        files |= _closure_of(path.resolve() if path.suffix == ".py" else _file_of(start))
    return sorted(_relative(path) for path in files)


@functools.cache
def _closure_of(start: Path) -> frozenset[Path]:
    found: set[Path] = set()
    waiting = [start, *_parents(start)]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting.extend(_imports(path))
    return frozenset(found)


@functools.cache
def _imports(path: Path) -> tuple[Path, ...]:
    files: list[Path] = []
    for node in ast.walk(ast.parse(path.read_bytes(), filename=str(path))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in names:
            file = _file_of(name) if name.split(".")[0] == PACKAGE.name else None
            if file is not None:
                files += [file, *_parents(file)]
    return tuple(files)


def _file_of(module: str) -> Path | None:
    base = _ROOT.joinpath(*module.split("."))
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.is_file():
            return path
    return None


def _parents(path: Path) -> Iterable[Path]:
    """The __init__ files of the packages around a module: importing it runs them."""
    if not path.is_relative_to(PACKAGE):
        return
    folder = path.parent
    while folder.is_relative_to(PACKAGE):
        if (folder / "__init__.py").is_file():
            yield folder / "__init__.py"
        folder = folder.parent


def _relative(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
