"""Checks of a command before Snakemake starts: its folder, its study file and its cluster profile.

A profile is refused with which SLURM would not tell how jobs ended.
"""

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from dpstudy.core.errors import StudyError
from dpstudy.core.job import check_writable
from dpstudy.core.suggest import suggestion
from dpstudy.plan.unknown_target import no_such_target


def mistake(arguments: list[str]) -> str:
    """The first mistake in a command, as one sentence; "" where there is none.

    Args:
        arguments: Snakemake's.
    """
    named = list(_values(arguments, "--snakefile", "-s"))
    if missing := [name for name in named or ["Snakefile"] if not Path(name).is_file()]:
        return f"{Path.cwd()}: no {missing[0]} is here; run this in the repository's top folder"
    # A dry run, too, has Snakemake make folders of its own.
    if fault := unwritable(".snakemake" if Path(".snakemake").exists() else str(Path.cwd())):
        return fault
    for name in _values(arguments, "--configfile", "--configfiles"):
        if fault := _wrong(Path(name)):
            return fault
    for name in _values(arguments, "--workflow-profile"):
        if name != "none" and (fault := _wrong_profile(Path(name), any(_values(arguments, "--slurm-status-command")))):
            return fault
    return ""


def unwritable(folder: str) -> str:
    """Why an existing folder cannot be written to, as one sentence; "" where it can, or does not exist."""
    try:
        check_writable(folder)
    except StudyError as error:
        return str(error)
    return ""


def unknown_target(target: str, arguments: list[str]) -> str:
    """One sentence about a requested file or folder that no rule makes, with the most similar names.

    Args:
        arguments: Snakemake's, whose study files can be read.
    """
    from dpstudy.config.including import read_config

    files = list(_values(arguments, "--configfile", "--configfiles")) or ["config.yaml"]
    study: dict = {}
    for name in files:
        study |= read_config(name)
    cell = {"data set": "datasets", "feature set": "features", "entry": "methods", "epsilon": "epsilons"}
    names = {kind: [str(name) for name in study.get(key) or []] for kind, key in cell.items()}
    made = [
        f"results/{kind}/{name}.{ending}"
        for kind, endings in (("tables", ("csv", "tex")), ("figures", ("csv", "pdf", "png")))
        for name in study.get(kind) or {}
        for ending in endings
    ]
    return no_such_target(target, " ".join(files), names, made)


def _values(arguments: list[str], *flags: str) -> Iterator[str]:
    """The values given to any of these command-line flags."""
    follows = False
    for argument in arguments:
        flag, _, value = argument.partition("=")
        if argument.startswith("-"):
            follows = flag in flags
            if follows and value:
                yield value
        elif follows:
            yield argument


def _wrong(file: Path) -> str:
    from dpstudy.config.including import read_alone

    try:
        read_alone(file)
    except StudyError as error:
        return str(error)
    return ""


def _wrong_profile(folder: Path, given: bool) -> str:
    """What is wrong with a workflow profile, as one sentence; "" where nothing is.

    `given`: whether the command sets --slurm-status-command.
    """
    import yaml

    if not folder.is_dir():  # Snakemake would go on without it, and run everything here
        profiles = [str(path) for path in sorted(Path("profiles").glob("*"))]
        names = {Path(name).name: name for name in profiles}
        near = f" (did you mean {names[folder.name]!r}?)" if folder.name in names else suggestion(str(folder), profiles)
        return f"{folder}: no such folder{near}; --workflow-profile takes the path of one such as profiles/slurm"
    settings: dict = {}
    for file in folder.glob("config*.yaml"):
        with contextlib.suppress(UnicodeDecodeError, yaml.YAMLError, TypeError):  # Snakemake reports these errors
            settings |= yaml.safe_load(file.read_text(encoding="utf-8")) or {}
    if settings.get("executor") != "slurm" or settings.get("slurm-status-command") or given:
        return ""
    why = _sacct_fails()
    return why and (
        f"SLURM's sacct does not answer ({why}), so that jobs would end and the run not see it; set "
        f"slurm-status-command: squeue in {folder}/config.yaml, or wait until it answers"
    )


def _sacct_fails() -> str:
    """Why SLURM's accounting command sacct fails; "" where it works, or is missing: the plugin then asks squeue."""
    if not shutil.which("sacct"):
        return ""
    command = ["sacct", "--allocations", "--noheader", "--starttime", "now"]
    try:
        asked = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return (asked.stderr.strip() or f"exit status {asked.returncode}").splitlines()[0] if asked.returncode else ""
