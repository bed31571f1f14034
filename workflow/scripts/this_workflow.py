"""The import that every script begins with: it makes sure that dpstudy is the library beside the scripts.

Python looks through an environment before it looks beside a script, so that an editable link to another clone would
win, while a cell's hashes are of the files here. A script's own place is what Snakemake gives it as `__file__`; an
environment variable would not reach every job (`--sdm conda` takes PYTHONPATH away).
"""

import sys
import time
from pathlib import Path

import __main__

_OWN = Path(__main__.__file__).resolve().parents[1] / "dpstudy"
sys.path.insert(0, str(_OWN.parent))

import dpstudy  # noqa: E402

if (_imported := Path(dpstudy.__file__ or "").resolve().parent) != _OWN:
    # Of another version, perhaps: nothing of it is used, not even to say so.
    _sentence = (
        f"{_imported} is what Python imports as dpstudy, and not this workflow's own {_OWN}: something loads it when "
        "Python starts (a .pth file, or sitecustomize); take it out of the environment and run the same command again"
    )
    _log = Path(__main__.snakemake.log[0])
    _log.parent.mkdir(parents=True, exist_ok=True)
    _log.write_text(f"{time.strftime('%Y-%m-%d %H:%M:%S')} ERROR {_sentence}\n", encoding="utf-8")
    sys.exit(f"dpstudy: {_sentence}")

from dpstudy.core.job import job  # noqa: E402

__all__ = ["job"]
