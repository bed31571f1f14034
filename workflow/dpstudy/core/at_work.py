"""Who is at work in a folder: processes of this machine, and jobs in SLURM's queue."""

import re
import subprocess
from pathlib import Path


def here(program: str, argument: str = "", folder: str | Path = "") -> list:
    """Processes in a folder that run `program` (or Python running it), with `argument` somewhere in an argument.

    Args:
        folder: the current one where left out.

    Returns:
        of psutil.
    """
    import psutil

    processes, place = [], str(Path(folder).resolve())
    for process in psutil.process_iter(["cmdline", "cwd"]):
        command, within = process.info["cmdline"] or [], process.info["cwd"] == place
        if within and runs(command, program) and any(argument in part for part in command):
            processes.append(process)
    return processes


def runs(command: list[str], program: str) -> bool:
    """Whether a command line is of a program: by its own name, or as what Python was given to run.

    >>> runs(["python3.11", "-u", "/usr/bin/snakemake", "-n"], "snakemake")
    True
    >>> runs(["tail", "-f", "snakemake.log"], "snakemake")
    False
    """
    first, *rest = (*command, "")
    name = Path(first).name
    if name == program or (program == "python" and re.fullmatch(r"python[\d.]*", name)):
        return True
    given = next((part for part in rest[:4] if not part.startswith("-")), "")
    return re.fullmatch(r"python[\d.]*", name) is not None and Path(given).name == program


def slurm_jobs(folder: str | Path = "") -> list[str] | None:
    """The numbers of a folder's jobs in SLURM's queue; None where that cannot be known.

    Jobs that wait for the end of others (`sbatch --dependency`) are not at work: they may wait for who asks.

    Args:
        folder: the current one where left out.
    """
    command = ["squeue", "--noheader", "--me", "--format=%i|%Z|%r"]
    try:
        asked = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):  # no SLURM here, or it does not answer
        return None
    place = str(Path(folder).resolve())
    lines = (re.fullmatch(r"([^|]*)\|(.*)\|([^|]*)", line) for line in asked.stdout.splitlines())
    found = (line.groups() for line in lines if line)
    return [number for number, folder_of, reason in found if folder_of == place and reason != "Dependency"]
