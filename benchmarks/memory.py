"""The peak memory of every rule of a study, beside what the rule declares."""

import ast
import csv
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.timing import table, title, verdict
from benchmarks.workflow import REPOSITORY, lay_out

LARGEST_RATIO = 1.5
STUDIES = ("config.yaml", "tests/workflow/every_rule.yaml")  # together they have every rule but those of a bundle


def measured(folder: Path) -> dict[str, list[tuple[float, float, str, float]]]:
    """Rule -> (peak resident MB, declared mem_mb, job, seconds) of each job whose benchmark file says both."""
    found: dict[str, list[tuple[float, float, str, float]]] = {}
    for path in sorted((folder / "results" / "benchmarks").rglob("*.tsv")):
        with open(path, encoding="utf-8") as file:
            for row in csv.DictReader(file, delimiter="\t"):
                seen = 0.0 if row["max_rss"] in ("NA", "-") else float(row["max_rss"])
                declared = float(ast.literal_eval(row["resources"])["mem_mb"])
                job = path.relative_to(folder / "results" / "benchmarks").with_suffix("")
                peak = max(1.048576 * seen, logged(folder / "results" / "logs" / f"{job}.log"))
                if not peak:  # over before it was looked at, and no job of ours
                    continue
                found.setdefault(row["rule_name"], []).append((peak, declared, str(job), float(row["s"])))
    return found


def logged(log: Path) -> float:
    """The peak that a job noted at its end; the benchmark file's is of moments, half a minute apart after the first."""
    found = re.findall(r"done in [0-9.]+ s, ([0-9]+) MB at most", log.read_text(encoding="utf-8"))
    return float(found[-1]) if found else 0.0


def run(threads: int, repeats: int, study: str | None = None) -> None:
    """Run studies in folders of their own; print, per rule, the jobs nearest to and farthest from what they declare."""
    title("(m) Peak memory of each rule, MB")
    found: dict[str, list[tuple[float, float, str, float]]] = {}
    for name in (study,) if study else STUDIES:
        print(f"{name}, one job at a time")
        for rule, jobs in measured_in(name, threads).items():
            found.setdefault(rule, []).extend(jobs)
    print("\nOf each rule the job with the largest share of its mem_mb, and with the least.\n")
    rows = []
    for rule, jobs in sorted(found.items()):
        nearest = max(jobs, key=lambda one: one[0] / one[1])
        farthest = min(jobs, key=lambda one: one[0] / one[1])
        for peak, declared, job, _ in dict.fromkeys((nearest, farthest)):
            fits = peak <= declared <= LARGEST_RATIO * peak
            ratio = f"{declared / peak:.2f}"
            rows.append((rule, len(jobs), f"{peak:.0f}", f"{declared:.0f}", ratio, verdict(fits), job))
    table(("rule", "jobs", "measured", "declared", "ratio", f"1 to {LARGEST_RATIO}", "job"), rows)


def measured_in(study: str, threads: int) -> dict[str, list[tuple[float, float, str, float]]]:
    """As of `measured`, of a study that is run for it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lay_out(folder)
        shutil.copy2(REPOSITORY / study, folder / "measured.yaml")
        snakemake = str(Path(sys.executable).with_name("snakemake"))
        command = [snakemake, "--cores", str(threads), "--benchmark-extended", "--configfile", "measured.yaml"]
        done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            sys.exit(f"the study failed:\n{done.stdout[-3000:]}")
        return measured(folder)
