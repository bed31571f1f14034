"""`make study`: run Snakemake, after clearing a lock that a dead run left, and end by saying what went wrong, if any.

A lock that a living run holds is never cleared. How far the study is shows `terminal`; Snakemake's own output is shown
with DPSTUDY_VERBOSE=1, and for all that is asked of Snakemake beside running a study (--dry-run, --unlock, ...).
"""

from terminal import installed  # noqa: F401

# isort: split
import contextlib
import fcntl
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from dpstudy.core.at_work import here, slurm_jobs
from dpstudy.plan.internals import SCRIPTS
from terminal.asked import mistake, unknown_target
from terminal.failures import explain
from terminal.follow import LOGGER, follow

STATE = Path(".snakemake")
# "machine process [SLURM job]" of the last run; locked as long as it, or its Snakemake, lives.
RUN = STATE / "dpstudy-run"
SNAKEMAKE = str(Path(sys.executable).with_name("snakemake"))
# The last flag ends the list of --quiet, or that of --logger, so that a target may follow.
OWN_OUTPUT = ["--quiet", "host", "rules", "--rerun-incomplete"]
VIEWED = [*LOGGER, "--rerun-incomplete"]
# Flags that say what is run, and on what; with others Snakemake may have something to print that a view would hide.
SILENT = re.compile(
    r"--|-[cjkfFRUO]|-[cj]\d+|--(cores|jobs|local-cores|keep-going|retries|latency-wait|snakefile|configfiles?|config|until|omit-from"
    r"|force|forceall|forcerun|rerun-incomplete|rerun-triggers|profile|workflow-profile|executor|resources"
    r"|default-resources|set-resources|set-threads|software-deployment-method|sdm|seconds-between-status-checks|slurm-.+)"
    r"(=.*)?"
)
SLURM_JOB = "SLURM_JOB_ID"
PATIENCE_SECONDS = 2  # for a run that was killed just now
LAST_WORDS_SECONDS = 20  # for its jobs
QUEUE_SECONDS = 10  # until SLURM is asked again
SILENCE_SECONDS = 300  # that SLURM may be away
LEAST_BYTES = 1 << 17  # that Snakemake needs for notes of its own
FULL = "the disk is full; free some space and run the same command again"
READ_ONLY = "results: cannot be written to, the disk is read-only; mount it for writing and run the same command again"


class RefusedError(Exception):
    """Why the study cannot be run now, in one sentence."""


def main(arguments: list[str]) -> int:
    """Run the study; the exit status is Snakemake's."""
    try:
        if fault := mistake(arguments):
            raise RefusedError(fault)
        if disk_is_full():
            raise RefusedError(FULL)
        STATE.mkdir(exist_ok=True)
        with only_run() as lock:
            clear_dead_run(arguments)
            RUN.write_text(f"{socket.gethostname()} {psutil.Process().pid} {os.environ.get(SLURM_JOB, '')}\n")
            started, refused = time.time(), ""
            if shows_progress(arguments):
                status, study = follow([SNAKEMAKE, *VIEWED, *arguments], lock)
                failed, refused = [(job.name, job.logs, job.ended) for job in study.failed.values()], study.refused
                if study.unknown:
                    refused = unknown_target(study.unknown, arguments)
            else:
                status, failed = run_snakemake(arguments, lock), []
    except RefusedError as refusal:
        print(f"dpstudy: {refusal}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"dpstudy: {error.filename}: {error.strerror}; mend this and try again", file=sys.stderr)
        return 1
    if status:
        explain(status, started, failed, disk_trouble(), refused)
    return status


@contextlib.contextmanager
def only_run() -> Iterator[int]:
    """Hold this folder against a second run; yield the lock's file descriptor.

    The system frees the lock when run.py and Snakemake, which inherits it, are dead, however they died.
    """
    with open(RUN, "a") as file:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not locked(file.fileno()):
            if time.monotonic() > deadline:
                raise RefusedError(f"this folder is in use by {holder()}; wait for it, or stop it, then try again")
            time.sleep(0.1)
        yield file.fileno()


def holder() -> str:
    """Who holds the lock: what this machine can see of it, else what was noted."""
    host, number, *_ = (*RUN.read_text().split(), "", "")
    if host == socket.gethostname():
        alive = number.isdigit() and psutil.pid_exists(int(number))  # else its Snakemake outlived it
        numbers = [number] if alive else [str(process.pid) for process in here("snakemake")]
        return "process " + ", ".join(numbers or [number])
    return f"process {number} on the machine {host!r}" if host else "another run"


def locked(descriptor: int) -> bool:
    """Try to take the lock; True too on a file system without locks, where Snakemake's own lock remains."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def clear_dead_run(arguments: list[str]) -> None:
    """Remove the lock and the temporary files that a run left which was killed."""
    locks = STATE / "locks"
    if not (locks.is_dir() and any(locks.iterdir())):
        return
    wait_for_jobs()
    queued = slurm_jobs()
    for process in psutil.wait_procs(here("snakemake"), PATIENCE_SECONDS)[1]:
        raise RefusedError(f"this folder is in use by process {process.pid}; wait for it, or stop it, then try again")
    host, _, job = (*RUN.read_text().split(), *3 * [""])[:3]
    # SLURM queues a controller again under its number, perhaps on another node: its earlier life is over.
    ended = job and (job == os.environ.get(SLURM_JOB) or (queued is not None and job not in queued))
    if host not in ("", socket.gethostname()) and not ended:
        raise RefusedError(
            f"this folder is in use by a run on the machine {host!r}, which cannot be seen from here; "
            "wait for it, or if it is dead, run snakemake --unlock, then try again"
        )
    for process in psutil.wait_procs(here("python", SCRIPTS), LAST_WORDS_SECONDS)[1]:
        raise RefusedError(
            f"process {process.pid}, a job of a run that died, is still at work; stop it, then try again"
        )
    print("dpstudy: clearing the lock of a run that died")
    cleared = subprocess.run([SNAKEMAKE, *OWN_OUTPUT, "--unlock", *arguments], capture_output=True, text=True)
    if cleared.returncode:
        sys.stderr.write(cleared.stderr)
        raise RefusedError("the lock of a run that died could not be cleared; mend what is named above")
    remove_half_written("results")


def wait_for_jobs() -> None:
    """Wait for jobs in SLURM's queue that a run left behind, whose results are kept.

    Raises:
        RefusedError: there is a SLURM, and it does not answer: jobs may be at work.
    """
    announced: list[str] = []
    silent = 0.0  # since when SLURM does not answer
    while True:
        queued = slurm_jobs()
        if queued is None and (announced or shutil.which("squeue")):
            silent = silent or time.monotonic()
            of_them = f": {' '.join(announced)}" if announced else ""
            if time.monotonic() - silent > SILENCE_SECONDS:
                raise RefusedError(
                    f"SLURM's squeue does not answer, and jobs of a run that died may be at work{of_them}; try again "
                    "once it answers, or if there are none, run snakemake --unlock, then try again"
                )
            time.sleep(QUEUE_SECONDS)
            continue
        silent, left = 0.0, [number for number in queued or () if number != os.environ.get(SLURM_JOB)]
        if not left:
            return
        if left != announced:
            print(
                f"dpstudy: waiting for jobs that an earlier run left in SLURM's queue: {' '.join(left)}; what they "
                "make is kept (to be rid of one: scancel NUMBER)",
                flush=True,
            )
            announced = left
        time.sleep(QUEUE_SECONDS)


def remove_half_written(folder: str) -> None:
    """Remove what a run that died had begun to write below a folder: files, and folders of several."""
    for leftover in list(Path(folder).rglob(".*.tmp")):
        if leftover.is_dir():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            leftover.unlink(missing_ok=True)


def shows_progress(arguments: list[str]) -> bool:
    """Whether the arguments ask for nothing but to run a study, and nobody asked for Snakemake's own output."""
    flags = [argument for argument in arguments if argument.startswith("-")]
    return not os.environ.get("DPSTUDY_VERBOSE") and all(SILENT.fullmatch(flag) for flag in flags)


def run_snakemake(arguments: list[str], lock: int) -> int:
    """Snakemake's exit status, its own output shown; a signal counts as 128 and its number, as in a shell."""
    process = subprocess.Popen([SNAKEMAKE, *OWN_OUTPUT, *arguments], pass_fds=[lock])
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    while True:
        try:
            status = process.wait()
        except KeyboardInterrupt:  # Snakemake got it too, and ends by itself
            continue
        return status if status >= 0 else 128 - status


def disk_is_full() -> bool:
    """Whether there is no room for Snakemake's own notes."""
    return shutil.disk_usage(".").free < LEAST_BYTES


def disk_trouble() -> str:
    """What is wrong with the disk now; "" where nothing is."""
    if disk_is_full():
        return FULL
    if os.path.isdir("results") and os.statvfs("results").f_flag & os.ST_RDONLY:
        return READ_ONLY
    return ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
