"""What SLURM says of a job that it ended, in words, and what to do about it."""

import re

STATUS = re.compile(r"SLURM status is: '(\w+)'")
ENDED = {
    "TIMEOUT": "was ended by SLURM at its time limit; give its rule more runtime in the profile",
    "OUT_OF_MEMORY": "was ended by SLURM over its memory; give its rule more mem_mb in the profile",
    "CANCELLED": "was cancelled in SLURM's queue, by somebody's scancel or the cluster's own doing",
    "NODE_FAIL": "was lost with the node that it ran on",
    "BOOT_FAIL": "was lost with the node that it was to run on",
    "DEADLINE": "was ended by SLURM at its deadline",
}


def ended(message: str | None) -> str:
    """How SLURM ended a job, and the remedy; "" where the job failed of itself, or of no cluster is the talk.

    Args:
        message: of Snakemake's executor.

    >>> ended("SLURM-job '7' failed, SLURM status is: 'NODE_FAIL'. Reason: Unknown.")
    'was lost with the node that it ran on'
    """
    found = STATUS.search(message or "")
    return ENDED.get(found[1], "") if found else ""
