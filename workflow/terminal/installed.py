"""Checks that required packages are installed, imported first by commands: one sentence instead of a traceback."""

import importlib.util
import sys

_NEEDED = ("snakemake", "psutil", "yaml", "jsonschema", "numpy", "pandas", "pyarrow")

if sys.version_info < (3, 11):  # noqa: UP036  (people run it with what they have)
    sys.exit(f"dpstudy needs Python 3.11 or newer, and {sys.executable} is {sys.version.split()[0]}")
if missing := [name for name in _NEEDED if importlib.util.find_spec(name) is None]:
    sys.exit(
        f"dpstudy: {sys.executable} lacks {', '.join(missing)}; run `make study` once, which sets up .venv, and then "
        f".venv/bin/python {sys.argv[0]}, or install envs/requirements.txt"
    )
