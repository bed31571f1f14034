"""Which packages the program of a bundle needs: those that its files import, in the versions that the model was made
with."""

import ast
import importlib.metadata
import sys
from collections.abc import Iterable
from pathlib import Path

_OWN = "dpstudy"
_BESIDE = {"kymatio": "scipy"}  # kymatio 0.3.0 does not say that it fails with scipy 1.17


def requirements(paths: Iterable[str | Path]) -> list[str]:
    """Lines of a requirements.txt for Python files, sorted: what they import, wherever in a file that stands.

    Raises:
        KeyError: an imported package is not installed here.
    """
    return sorted({f"{name}=={importlib.metadata.version(name)}" for name in providers(paths).values()})


def providers(paths: Iterable[str | Path]) -> dict[str, str]:
    """Module -> the package that brings it, of all that Python files import, sorted.

    Raises:
        KeyError: an imported package is not installed here.
    """
    found = {name for path in paths for name in _imported(Path(path))} - sys.stdlib_module_names - {_OWN}
    found |= {_BESIDE[name] for name in found & _BESIDE.keys()}
    packages = importlib.metadata.packages_distributions()
    return {name: packages[name][0] for name in sorted(found)}


def _imported(path: Path) -> Iterable[str]:
    for node in ast.walk(ast.parse(path.read_bytes(), filename=str(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module.partition(".")[0]
