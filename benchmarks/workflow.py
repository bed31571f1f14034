"""Snakemake's own time on a study of 1,000 cells: until the first job starts, and when there is nothing to do."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

from benchmarks.timing import table, title, verdict

REPOSITORY = Path(__file__).parents[1]
ENTRIES, EPSILONS = 50, ["0.1", "0.25", "0.5", "1", "2", "3", "4", "6", "8", "inf"]
GOALS = {"to the first job": 15.0, "nothing to do": 10.0}


def study(entries: int = ENTRIES) -> dict:
    """2 feature sets x some entries x 10 epsilons of the embedded digits."""
    return {
        "study": "thousand-cells",
        "datasets": {"digits": {"reader": "digits", "splits": {"test": 0.2}, "shards": 1, "delta": "1e-4"}},
        "features": {"pixels": {"extractor": "pixels"}, "unit-pixels": {"extractor": "pixels", "normalise": "l2"}},
        "methods": {
            f"share-{number:02d}": {"method": "least_squares", "gram_share": round(0.1 + 0.5 * number / entries, 4)}
            for number in range(entries)
        },
        "epsilons": EPSILONS,
        "seeds": [0],
        "tables": {"digits": {"caption": "Test accuracy (%).", "dataset": "digits"}},
        "figures": {"digits": {"dataset": "digits", "title": "Handwritten digits"}},
    }


def lay_out(folder: Path) -> None:
    """Copy what a run needs into `folder`, so that the repository's own results and locks stay as they are."""
    shutil.copy2(REPOSITORY / "Snakefile", folder)
    for name in ("workflow", "profiles", "envs"):
        shutil.copytree(REPOSITORY / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "study.yaml").write_text(yaml.safe_dump(study(), sort_keys=False), encoding="utf-8")


def command(*options: str) -> list[str]:
    """A snakemake command line on the study."""
    snakemake = str(Path(sys.executable).with_name("snakemake"))
    return [snakemake, "--cores", "1", "--configfile", "study.yaml", *options]


def finished(folder: Path, *options: str) -> tuple[float, str]:
    """Wall seconds of a whole snakemake run, and all that it printed."""
    started = time.monotonic()
    done = subprocess.run(
        command(*options), cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{' '.join(done.args)} failed:\n{done.stdout[-3000:]}")
    return time.monotonic() - started, done.stdout


def first_job(folder: Path) -> float:
    """Wall seconds from starting snakemake until it announces its first job; it is stopped there."""
    started = time.monotonic()
    process = subprocess.Popen(
        command(), cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    printed = []
    for line in process.stderr:
        printed.append(line)
        if line.startswith(("rule ", "localrule ")):
            break
    else:
        sys.exit(f"snakemake started no job:\n{''.join(printed)[-3000:]}")
    seconds = time.monotonic() - started
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    finished(folder, "--unlock")
    return seconds


def pretend_complete(folder: Path) -> None:
    """Give every output an empty file and let Snakemake record it as made by today's code and config."""
    _, listed = finished(folder, "--summary")
    for line in listed.splitlines():
        if line.startswith("results/"):
            path = folder / line.split("\t")[0]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
    finished(folder, "--touch", "--forceall")  # forced, or up-to-date files would get no record


def check_that_changes_are_seen(folder: Path) -> None:
    """Nothing to do must mean that parameters were compared: one edited entry reruns its cells, and no others."""
    edited = study()
    edited["methods"]["share-00"]["gram_share"] = 0.9
    (folder / "study.yaml").write_text(yaml.safe_dump(edited, sort_keys=False), encoding="utf-8")
    _, printed = finished(folder, "--dry-run")
    jobs = [line.split()[1] for line in printed.splitlines() if line.startswith("train_closed_form ")]
    if jobs[:1] != [str(2 * len(EPSILONS))]:
        sys.exit(f"an edited entry should rerun its {2 * len(EPSILONS)} cells:\n{printed[-3000:]}")


def run(threads: int, repeats: int) -> None:
    """Print both times and the goals."""
    cells = 2 * ENTRIES * len(EPSILONS)
    title(f"(c) The workflow on a study of {cells:,} cells")
    print(f"Wall seconds of `snakemake --cores 1`, best and worst of {repeats} repeats.\n")
    seconds = {name: [] for name in GOALS}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lay_out(folder)
        for _ in range(repeats):
            seconds["to the first job"].append(first_job(folder))
        pretend_complete(folder)
        for _ in range(repeats):
            taken, printed = finished(folder)
            if "Nothing to be done" not in printed:
                sys.exit(f"something was to be done:\n{printed[:3000]}")
            seconds["nothing to do"].append(taken)
        check_that_changes_are_seen(folder)
    table(
        ("snakemake", "wanted", "best", "worst", ""),
        [
            (
                name,
                f"<= {GOALS[name]:g} s",
                f"{min(values):.1f}",
                f"{max(values):.1f}",
                verdict(max(values) <= GOALS[name]),
            )
            for name, values in seconds.items()
        ],
    )
