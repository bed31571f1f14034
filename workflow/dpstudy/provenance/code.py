"""The library files that a piece of code imports: a rule declares them as inputs, so that editing one reruns it.

Found by reading import statements, wherever in a file they stand. Modules chosen by name at run time (methods,
readers, extractors) are given as further starting points. Of a method in another package, files of that package count.
"""

import functools
import importlib.util
from pathlib import Path

from dpstudy.core.errors import StudyError
from dpstudy.provenance.imports import imports_of, write_imports

PACKAGE = Path(__file__).resolve().parents[1]
WORKFLOW = PACKAGE.parent
_SCRIPTS = WORKFLOW / "scripts"


def closure(*starts: str) -> list[str]:
    """The sorted library files that scripts (paths) and modules (dotted names) import, directly or indirectly.

    Scripts themselves are included, as are modules of other packages, with what they import from their own. Paths are
    relative to the current folder where they lie below it.

    Raises:
        StudyError: a module is missing, or a file is no Python.
    """
    return list(_named(starts, Path.cwd()))


@functools.cache  # thousands of cells ask for the same
def _named(starts: tuple[str, ...], here: Path) -> tuple[str, ...]:
    files: set[Path] = set()
    for start in starts:
        path = Path(start)
        files |= _closure_of(path.resolve() if path.suffix == ".py" else _file_of(start) or _outside(start))
    write_imports()
    return tuple(sorted(relative(path, here) for path in files))


@functools.cache
def _closure_of(start: Path) -> frozenset[Path]:
    files: set[Path] = set()
    waiting = [start, *_parents(start)]
    while waiting:
        path = waiting.pop()
        if path not in files:
            files.add(path)
            waiting.extend(_imports(path))
    return frozenset(files)


@functools.cache
def _imports(path: Path) -> tuple[Path, ...]:
    files: list[Path] = []
    root = next(folder for folder in path.parents if not (folder / "__init__.py").is_file())
    *around, stem = path.relative_to(root).with_suffix("").parts
    roots = {(*around, stem)[0]: root, PACKAGE.name: WORKFLOW}
    beside = _SCRIPTS if root == _SCRIPTS else None  # a script imports its neighbours by their bare names
    for level, module, imported in imports_of(path):
        near = around[: len(around) + 1 - level] if level else []
        base = ".".join([*near, *([module] if module else [])])
        names = [base, *(f"{base}.{name}" for name in imported)]
        for name in names:
            folder = roots.get(name.split(".")[0], beside)
            file = _file_of(name, folder) if folder else None
            if file is not None:
                files += [file, *_parents(file)]
    return tuple(files)


@functools.cache
def _file_of(module: str, root: Path = WORKFLOW) -> Path | None:
    base = root.joinpath(*module.split("."))
    return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()), None)


def _outside(module: str) -> Path:
    """The file of a module of another package.

    Raises:
        StudyError: there is none.
    """
    if module.split(".")[0] == PACKAGE.name:
        raise StudyError(f"{module}: there is no file workflow/{module.replace('.', '/')}.py")
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:  # of a package around it
        spec = None
    if spec is None or spec.origin is None:
        raise StudyError(f"{module}: no file of this module is installed")
    return Path(spec.origin).resolve()


@functools.cache
def _parents(path: Path) -> tuple[Path, ...]:
    """The __init__ files of the packages around a file: importing it runs them."""
    init = path.parent / "__init__.py"
    return (init, *_parents(path.parent)) if init.is_file() else ()


def relative(path: Path, folder: Path | None = None) -> str:
    """The path of a file in rules: relative to `folder` (default: the current one) if it lies below it.

    Snakemake's records then hold when a clone is moved with its results; of a study in a folder elsewhere they name the
    clone's place.
    """
    folder = folder or Path.cwd()
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else str(path)
