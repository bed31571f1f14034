"""Running a study through workflow/run.py, and killing it inside a rule of one's choice."""

import base64
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar

import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from tests.workflow.conftest import StudyFolder

# Rules in the order in which a study comes to them -> their first outputs.
OUTPUTS = {
    "prepare_shard": "data/*/*/part-*.parquet",
    "prepare_manifest": "data/*/*/manifest.json",
    "describe_images": "dedup/images/*/*/part-*.safetensors",
    "fit_dedup_basis": "dedup/*/basis.safetensors",
    "search_shard": "dedup/*/candidates/*/part-*.safetensors",
    "align_shard": "dedup/*/parts/*/*/part-*.parquet",
    "calibrate_dedup": "dedup/*/calibration/*.json",
    "match_public": "dedup/*/matches.parquet",
    "merge_matches": "dedup/*/matches.parquet",
    "convert_weights": "backbones/efficientnet*/model.safetensors",
    "pretrain_backbone": "backbones/cnn/model.safetensors",
    "fit_projection": "fits/*/projection.safetensors",
    "extract_shard": "features/*/*/*/part-*.parquet",
    "extract_manifest": "features/*/*/*/manifest.json",
    "sum_statistics": "private/statistics/*/*/*/*/*.safetensors",
    "sum_share": "private/statistics/*/*/*/*/*/share-*.safetensors",
    "add_shares": "private/statistics/*/*/*/*/*.safetensors",
    "tune_entry": "tuning/*/*/*/*/trials.parquet",
    "train_closed_form": "cells/*/*/ls/*/run.json",
    "train_stepped": "cells/*/*/sgd/*/run.json",
    "train_claimed": "cells/*/*/smoothing/*/run.json",
    "train_seed": "runs/*/*/net/*/*/run.json",
    "gather_cell": "cells/*/*/net/*/run.json",
    "score_cell": "cells/*/*/*/*/metrics.json",
    "audit_cell": "audit/*/*/ls/*/audit.json",
    "audit_black_box": "audit/*/*/net/*/black-box.json",
    "certify_cells": "privacy/certificates/*.json",
    "total_privacy": "privacy/total.json",
    "summarise_cells": "summary.csv",
    "judge_claims": "claims/*.json",
    "build_table": "tables/*.tex",
    "draw_figure": "figures/*.pdf",
    "build_report": "report/index.html",
    "write_bundle": "release/*/*/*/*",
    "write_paper": "tables/all.tex",
    "compile_paper": "tables/all.pdf",
}
PAGE = "report/index.html"
_POLL_SECONDS = 0.01


class Run:
    """One `python workflow/run.py --cores 2` in a process group of its own."""

    started: ClassVar[list["Run"]] = []

    def __init__(self, study: StudyFolder, *arguments: str):
        self.study = study
        self.output = study.path / f"run-{len(Run.started)}.out"
        self._started_ns = time.time_ns()
        with open(self.output, "w") as output:
            self.process = subprocess.Popen(
                [sys.executable, "workflow/run.py", "--cores", "2", *arguments],
                cwd=study.path,
                env=study.environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                # A background shell passes on that SIGINT is ignored.
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )
        Run.started.append(self)

    def said(self) -> str:
        return self.output.read_text()

    def wait(self, timeout: float = 300) -> int:
        return self.process.wait(timeout)

    def wait_for(self, rule: str, timeout: float = 300) -> bool:
        """Wait until a job of `rule` has opened its log; False where the run ended first."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            ended = self.process.poll() is not None
            with contextlib.suppress(FileNotFoundError):  # Snakemake removed an old one meanwhile
                if any(log.stat().st_mtime_ns > self._started_ns for log in self._logs(rule)):
                    return True
            if ended:
                return False
            time.sleep(_POLL_SECONDS)
        raise TimeoutError(f"no job of {rule} in {timeout} s:\n{self.said()}")

    def _logs(self, rule: str) -> list[Path]:
        return list((self.study.path / "results" / "logs" / rule).rglob("*.log"))

    def snakemake(self) -> psutil.Process:
        """The run's Snakemake."""
        (child,) = [child for child in psutil.Process(self.process.pid).children() if "snakemake" in child.name()]
        return child

    def kill_snakemake(self) -> None:
        """SIGKILL Snakemake alone; run.py then ends by itself, and the jobs must notice."""
        self.snakemake().kill()
        assert self.wait(30) == 128 + signal.SIGKILL, self.said()

    def kill_all(self) -> None:
        """SIGKILL run.py, Snakemake and the jobs."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.wait(30)

    def kill_job(self, rule: str) -> bool:
        """SIGKILL one job of `rule` alone, as a machine does that has no memory left; False where none is at work."""
        for process in self.alive():
            with contextlib.suppress(psutil.Error):
                files = [Path(file.path) for file in process.open_files()]
                if any(path.suffix == ".log" and rule in path.parts for path in files):
                    process.kill()
                    return True
        return False

    def unfinished_rules(self) -> set[str]:
        """The rules of the jobs that were at work when the run died, by the markers that Snakemake keeps of them."""
        markers = [path for path in (self.study.path / ".snakemake" / "incomplete").rglob("*") if path.is_file()]
        fresh = [_named_by(path) for path in markers if path.stat().st_mtime_ns > self._started_ns]
        return {rule for rule, output in OUTPUTS.items() if any(path.match(f"results/{output}") for path in fresh)}

    def alive(self) -> list[psutil.Process]:
        """The processes of the run that still live."""
        found = []
        for process in psutil.process_iter(["status"]):
            try:
                if os.getpgid(process.pid) == self.process.pid and process.info["status"] != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except ProcessLookupError:
                continue
        return found


def _named_by(marker: Path) -> Path:
    """The output that one of Snakemake's markers of unfinished work stands for."""
    parts = marker.parts[marker.parts.index("incomplete") + 1 :]
    return Path(base64.b64decode("".join(part.lstrip("@") for part in parts)).decode())


def workers_of(run: Run, module: str) -> list[psutil.Process]:
    """The processes that share a job; torchrun puts each into a session of its own."""
    found = []
    for child in psutil.Process(run.process.pid).children(recursive=True):
        with contextlib.suppress(psutil.Error):  # it may end meanwhile
            if any(module in argument for argument in child.cmdline()[2:4]):
                found.append(child)
    return found


def wait_until(happened: Callable[[], object], run: Run, timeout: float = 240) -> None:
    """Wait for something that comes of a run."""
    deadline = time.monotonic() + timeout
    while not happened():
        assert time.monotonic() < deadline and run.process.poll() is None, run.said()
        time.sleep(_POLL_SECONDS / 2)


def remove_newest_output(study: StudyFolder, rule: str) -> None:
    """Make Snakemake run the last job of a rule once more."""
    outputs = list((study.path / "results").glob(OUTPUTS[rule]))
    if outputs:
        max(outputs, key=lambda path: path.stat().st_mtime_ns).unlink()


def work_seconds(study: StudyFolder, rule: str) -> float:
    """How long the shortest job of a rule worked, by its log."""
    logs = (study.path / "results" / "logs" / rule).rglob("*.log")
    return min(float(re.findall(r"done in ([0-9.]+) s", log.read_text())[-1]) for log in logs)


def results_of(study: StudyFolder) -> dict[str, bytes]:
    """Every file of a study's results by its path, apart from logs, benchmarks and records."""
    folder, beside = study.path / "results", ("logs/", "benchmarks/", "records/")
    return {
        name: path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not (name := path.relative_to(folder).as_posix()).startswith(beside)
    }


def as_measured(results: dict[str, bytes]) -> dict[str, object]:
    """`results_of` a study without times: of trainings and trials, in the report's end, and when it was made."""
    found: dict[str, object] = dict(results)
    for name, content in results.items():
        if name.endswith(("run.json", "metrics.json")):
            found[name] = metrics = json.loads(content)
            for row in metrics["seeds"]:
                del row["seconds"]
            metrics["files"].pop("run.json", None)  # whose times are part of it
        elif name.endswith("trials.parquet"):
            found[name] = pq.read_table(pa.BufferReader(content)).drop_columns("seconds").to_pydict()
    if PAGE in found:
        page = re.sub(r"<dt>date</dt><dd>[^<]+</dd>", "", results[PAGE].decode())
        before, rules, after = page.partition("<h3>Rules</h3>")
        assert rules and "Time and memory" in after
        found[PAGE] = [before, after.partition("</section>")[2]]
    return found


def temporary_files(study: StudyFolder) -> list[Path]:
    """What half-written outputs would be called."""
    return [path for path in (study.path / "results").rglob("*.tmp")]


def kill_inside(study: StudyFolder, rule: str, delays: Iterator[float], what: str, *arguments: str) -> bool:
    """Run, kill `what` inside `rule`; True where a job of it was at work. Where it had ended, the next try finds work.

    `what` is "everything", "snakemake" alone, or one "job" alone, which the run must notice and tell.
    """
    run = Run(study, *arguments)
    if run.wait_for(rule):
        time.sleep(next(delays))
        if what == "job" and run.kill_job(rule):
            assert run.wait() == 1, run.said()
            assert f"failed: {rule} " in run.said() and "Traceback" not in run.said(), run.said()
            return True
        if what != "job" and run.process.poll() is None:
            run.kill_all() if what == "everything" else run.kill_snakemake()
            if rule in run.unfinished_rules():
                return True
        if what == "job" and run.process.poll() is None:  # its job was over: do not wait for the rest of the study
            run.kill_all()
    status = run.wait()
    assert status in (0, -signal.SIGKILL, 128 + signal.SIGKILL), run.said()
    if status == 0:  # all is done, and what is missing below finished targets would not be made again
        shutil.rmtree(study.path / "results")
    else:
        remove_newest_output(study, rule)
    return False
