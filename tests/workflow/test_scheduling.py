"""Snakemake's own work does not grow with the jobs that have ended."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
JOBS = 16
SNAKEFILE = """
import sys

sys.path.insert(0, {library!r})

from dpstudy.plan.internals import unthrottle

rule all:
    input: [f"{{number}}.txt" for number in range({jobs})]

rule one:
    output: "{{number}}.txt"
    shell: "sleep 0.4; touch {{output}}"

onstart:
    {call}
"""


def looks(folder: Path, call: str) -> int:
    """How often Snakemake looked at the ready jobs."""
    folder.mkdir()
    (folder / "Snakefile").write_text(SNAKEFILE.format(library=str(ROOT / "workflow"), jobs=JOBS, call=call))
    command = [str(Path(sys.executable).with_name("snakemake")), "--cores", "1", "--verbose"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stderr.count("Ready jobs: ")


def test_each_job_makes_one_look_at_the_ready_jobs(tmp_path):
    assert looks(tmp_path / "ours", "unthrottle(workflow)") <= JOBS + 3
    assert "onstart:\n    told(start.look_before, workflow, STUDY)" in (ROOT / "Snakefile").read_text()
    before = (ROOT / "workflow/dpstudy/plan/start.py").read_text().split("def look_before")[1]
    assert "internals.unthrottle(workflow)\n" in before.split("\ndef ")[0]
