"""Imports that are kept from one start to the next are those of the file as it is now."""

import ast
import json
import os
import subprocess
import sys

import pytest

from dpstudy.provenance import imports
from dpstudy.provenance.code import PACKAGE
from dpstudy.provenance.imports import imports_of

START = """
import ast, os, sys
from pathlib import Path
from dpstudy.provenance.imports import imports_of, read_imports, write_imports
read_imports(Path(sys.argv[1]))
parsed, parse = [], ast.parse
ast.parse = lambda *arguments, **options: parsed.append(options["filename"]) or parse(*arguments, **options)
found = [[list(one) for one in imports_of(Path(path))] for path in sys.argv[2:]]
os.chdir("/")  # as Snakemake does when it was given a folder
write_imports()
print([Path(path).name for path in parsed], found)
"""


def start(kept, *paths):
    """What one more process had to look at, and what it says of the files."""
    result = subprocess.run(
        [sys.executable, "-c", START, os.path.relpath(kept), *map(str, paths)],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(PACKAGE.parent)},
    )
    assert result.returncode == 0 and not result.stderr, result.stderr
    return ast.literal_eval("[" + result.stdout.replace("] [", "], [", 1) + "]")


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
    kept, path, other = tmp_path / "folder" / "imports.json", tmp_path / "module.py", tmp_path / "other.py"
    path.write_text("import os\n")
    assert start(kept, path) == [["module.py"], [[[0, "os", []]]]]
    assert start(kept, path) == [[], [[[0, "os", []]]]]
    other.write_text("from a import b\n")
    assert start(kept, path, other)[0] == ["other.py"] and start(kept, path, other)[0] == []
    written = kept.stat().st_mtime_ns
    assert start(kept, other) == [[], [[[0, "a", ["b"]]]]] and kept.stat().st_mtime_ns == written
    path.write_text("import re\n")
    assert start(kept, path, other) == [["module.py"], [[[0, "re", []]], [[0, "a", ["b"]]]]]


@pytest.mark.parametrize("damage", ["another version", "cut", "[]", "null", '{"version": null}', "folder", "hidden"])
def test_what_another_version_wrote_or_nobody_can_read_is_not_used(damage, tmp_path):
    kept, path = tmp_path / "imports.json", tmp_path / "module.py"
    path.write_text("import os\n")
    start(kept, path)
    content = json.loads(kept.read_text())
    if damage == "folder":
        kept.unlink()
        kept.mkdir()
    elif damage == "hidden":
        kept.chmod(0)
    elif damage == "another version":
        kept.write_text(json.dumps(content | {"version": "of before"}))
    else:
        kept.write_text(json.dumps(content)[:-9] if damage == "cut" else damage)
    if damage != "hidden" or os.geteuid():  # root reads everything
        assert start(kept, path) == [["module.py"], [[[0, "os", []]]]]


def test_versions_of_long_ago_are_forgotten(tmp_path, monkeypatch):
    kept = tmp_path / "imports.json"
    kept.write_text(json.dumps({"version": imports._version(), "imports": {f"{i}": [] for i in range(imports._MOST)}}))
    monkeypatch.setattr(imports, "_known", {})
    monkeypatch.setattr(imports, "_kept", None)
    imports.read_imports(kept)
    imports._known["new"] = []
    imports.write_imports()
    assert list(json.loads(kept.read_text())["imports"]) == ["new"]
