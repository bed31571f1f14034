"""The import statements of Python files, cached by file content between starts of Snakemake.

To parse the library takes a third of a second, and on a cluster each job starts Snakemake anew.
"""

import ast
import contextlib
import hashlib
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from dpstudy.core.errors import StudyError
from dpstudy.core.files import atomic

_MOST = 5000  # files of earlier versions are forgotten when there are so many
_known: dict[str, list] = {}  # by the hash of a file's content
_kept: tuple[Path, int] | None = None  # where, and how many lie there


def imports_of(path: Path) -> list[tuple[int, str, list[str]]]:
    """(level, module, names) of each import statement in a file; `import a.b` has no names and level 0.

    Raises:
        StudyError: the file is no Python.
    """
    content = path.read_bytes()
    key = hashlib.sha256(content).hexdigest()
    if key not in _known:
        try:
            tree = ast.parse(content, filename=str(path))
        except SyntaxError as error:
            raise StudyError(f"{path}: line {error.lineno}: no Python ({error.msg})") from None
        _known[key] = list(_imports(tree))
    return _known[key]


def read_imports(path: Path) -> None:
    """Load the cache in a file, which `write_imports` then updates.

    What another version of this file or of Python wrote, or nobody can read, is not used.
    """
    global _kept
    kept: object = None
    with contextlib.suppress(OSError, ValueError):
        kept = json.loads(path.read_bytes())
    imports = kept.get("imports") if isinstance(kept, dict) and kept.get("version") == _version() else None
    if isinstance(imports, dict) and len(imports) < _MOST:
        _known.update(imports)
    _kept = path.absolute(), len(_known)


def write_imports() -> None:
    """Save new entries to the cache file, if `read_imports` named one."""
    global _kept
    if _kept is not None and len(_known) > _kept[1]:
        # Another process may write the same at this moment, or the disk be full: it is found again next time.
        with contextlib.suppress(OSError, StudyError), atomic(_kept[0]) as file:
            file.write_text(json.dumps({"version": _version(), "imports": _known}), encoding="utf-8")
        _kept = _kept[0], len(_known)


def _version() -> str:
    return f"{sys.version_info[:2]} {hashlib.sha256(Path(__file__).read_bytes()).hexdigest()}"


def _imports(tree: ast.Module) -> Iterator[tuple[int, str, list[str]]]:
    for node in statements(tree.body):
        if isinstance(node, ast.Import):
            yield from ((0, alias.name, []) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.level, node.module or "", [alias.name for alias in node.names]


def statements(block: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """All statements of a block, including nested ones.

    Expressions are skipped: they are nine tenths of a tree and hold no imports.
    """
    for node in block:
        yield node
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            yield from statements(getattr(node, name, ()))
