"""Imports that are kept from one start to the next are those of the file as it is now."""

import json
import subprocess
import sys

from dpstudy.study import imports
from dpstudy.study.code import PACKAGE
from dpstudy.study.imports import imports_of

START = """
import ast, sys
from pathlib import Path
from dpstudy.study.imports import imports_of, keep_imports
kept, path = map(Path, sys.argv[1:])
keep_imports(kept)
if kept.exists():
    ast.parse = lambda *arguments, **options: sys.exit("parsed")
print(imports_of(path))
"""


def start(kept, path):
    """What one more process says of a file, or "parsed" where it had to look at it itself."""
    result = subprocess.run(
        [sys.executable, "-c", START, str(kept), str(path)],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(PACKAGE.parent)},
    )
    return result.stdout.strip() or result.stderr.strip()


def test_each_statement_is_found_wherever_it_stands(tmp_path):
    path = tmp_path / "module.py"
    path.write_text(
        "import os, a.b as c\nfrom . import d\ndef f():\n    from ..e import (g,\n        h as i)\n    'import no'\n"
    )
    assert [tuple(found) for found in imports_of(path)] == [
        (0, "os", []),
        (0, "a.b", []),
        (1, "", ["d"]),
        (2, "e", ["g", "h"]),
    ]


def test_they_are_kept_by_content(tmp_path):
    kept, path = tmp_path / "folder" / "imports.json", tmp_path / "module.py"
    path.write_text("import os\n")
    first = start(kept, path)
    assert first == "[(0, 'os', [])]" and start(kept, path) == "[[0, 'os', []]]"
    path.write_text("import re\n")
    assert start(kept, path) == "parsed"
    (tmp_path / "other.py").write_text("import os\n")
    assert start(kept, tmp_path / "other.py") == "[[0, 'os', []]]"


def test_what_another_version_wrote_or_nobody_can_read_is_not_used(tmp_path):
    kept, path = tmp_path / "imports.json", tmp_path / "module.py"
    path.write_text("import os\n")
    start(kept, path)
    content = json.loads(kept.read_text())
    kept.write_text(json.dumps(content | {"version": "of before"}))
    assert start(kept, path) == "parsed"
    kept.write_text(json.dumps(content)[:-9])
    assert start(kept, path) == "parsed"


def test_nothing_is_written_where_nothing_is_new(tmp_path, monkeypatch):
    monkeypatch.setattr(imports, "_known", {})
    imports._write(tmp_path / "imports.json", "version", 0)
    assert not list(tmp_path.iterdir())
