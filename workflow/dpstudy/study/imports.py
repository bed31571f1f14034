"""What Python files import, as their statements say: kept, by their content, from one start of Snakemake to the next.

To parse the library takes a third of a second, and on a cluster each job starts Snakemake anew.
"""

import ast
import atexit
import contextlib
import hashlib
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from dpstudy.errors import StudyError
from dpstudy.files import atomic

_known: dict[str, list] = {}  # by the hash of a file's content


def imports_of(path: Path) -> list[tuple[int, str, list[str]]]:
    """(level, module, names) of each import statement, wherever it stands; `import a.b` has no names and level 0.

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


def keep_imports(path: Path) -> None:
    """Know what `path` has of earlier starts, and write down there, when this process ends, what is new.

    What another version of this file or of Python wrote, or nobody can read, is not used.
    """
    version = f"{sys.version_info[:2]} {hashlib.sha256(Path(__file__).read_bytes()).hexdigest()}"
    try:
        kept = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        kept = {}
    if kept.get("version") == version:
        _known.update(kept["imports"])
    atexit.register(_write, path, version, len(_known))


def _write(path: Path, version: str, before: int) -> None:
    if len(_known) > before:
        # Another process may write the same at this moment; the next start tries again.
        with contextlib.suppress(OSError, StudyError), atomic(path) as file:
            file.write_text(json.dumps({"version": version, "imports": _known}), encoding="utf-8")


def _imports(tree: ast.Module) -> Iterator[tuple[int, str, list[str]]]:
    for node in statements(tree.body):
        if isinstance(node, ast.Import):
            yield from ((0, alias.name, []) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.level, node.module or "", [alias.name for alias in node.names]


def statements(block: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """Each statement of a block and within; expressions, nine tenths of a tree, hold no imports."""
    for node in block:
        yield node
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            yield from statements(getattr(node, name, ()))
