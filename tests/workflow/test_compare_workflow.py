"""`make compare` on trees that the workflow made."""

import json
import subprocess
import sys


def compare(study, *arguments):
    command = [sys.executable, "workflow/compare.py", *map(str, arguments)]
    return subprocess.run(command, cwd=study.path, env=study.environment, capture_output=True, text=True, timeout=120)


def test_a_copied_tree_is_equal_until_something_changes(finished, study, tmp_path):
    elsewhere = (study.path / "results").rename(tmp_path / "copied")  # without .snakemake
    same = compare(finished, "results", elsewhere)
    assert (same.returncode, same.stderr) == (0, "")
    assert "cells: 8 alike, 0 differ" in same.stdout and "figures: 2 alike, 0 differ" in same.stdout
    path = elsewhere / "cells/digits/pixels/sgd/eps=1/ledger.json"
    ledger = json.loads(path.read_text())
    ledger["events"][0]["noise_multiplier"] /= 2
    path.write_text(json.dumps(ledger))
    changed = compare(finished, "results", elsewhere)
    assert changed.returncode == 1 and "cells: 7 alike, 1 differ" in changed.stdout
    assert "\ndigits/pixels/sgd/eps=1\n" in changed.stdout and ".noise_multiplier" in changed.stdout
    path.unlink()
    half = compare(finished, "results", elsewhere)
    assert half.returncode == 2 and half.stderr.count("\n") == 1
    assert "digits/pixels/sgd/eps=1: half-written, it has no ledger.json" in half.stderr
