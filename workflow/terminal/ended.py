"""The reason why SLURM ended a job, from a message of Snakemake's SLURM executor or from the job's log."""

import re
from collections.abc import Iterable

from terminal.failures import lines_of

STATUS = re.compile(r"SLURM-job '.+?' failed.+?SLURM status is: '(\w+)", re.DOTALL)
MEMORY = re.compile(r"slurmstepd.* (exceeded memory limit|oom_kill|OOM Killed)", re.IGNORECASE)
# What happened, and the remedy where the attempts that a profile's `retries` allow were not enough.
WAYS = {
    "TIMEOUT": ("SLURM ended it at its time limit", "give its rule more runtime in the profile"),
    "OUT_OF_MEMORY": ("SLURM ended it at its memory limit", "give its rule more mem_mb in the profile"),
    "CANCELLED": ("it was cancelled in SLURM (scancel)", "the same command sends it again"),
    "NODE_FAIL": ("its node failed", "the same command sends it again"),
    "BOOT_FAIL": ("its node did not start", "the same command sends it again"),
}


def ending(message: str, logs: Iterable[str]) -> tuple[str, str] | None:
    """The reason why SLURM ended a failed job, and a remedy; None where SLURM reports nothing but the failure.

    Args:
        message: of the executor, on the failure.
        logs: of the job, SLURM's among them.
    """
    match = STATUS.search(message)
    status = match[1] if match else ""
    if status == "FAILED" and any(MEMORY.search(line) for log in logs for line in lines_of(log)):
        status = "OUT_OF_MEMORY"  # SLURM reports it differently, by how it limits memory
    return WAYS.get(status)
