"""Snakemake's records of what made each file, kept within `results`, so that they travel with it.

Snakemake looks for them in .snakemake/metadata, which is made a link. Without a record it knows nothing of a file but
its time, and would take it for current whatever the config says.
"""

import contextlib
import os
import shutil
from base64 import urlsafe_b64encode
from collections.abc import Iterable
from pathlib import Path

RECORDS = "results/records"
_SNAKEMAKE = ".snakemake"
_LINK = f"{_SNAKEMAKE}/metadata"
_LONG_AGO = 86_400  # seconds; at 0 Snakemake takes a file for one without a time
_DATABASE = f"{_SNAKEMAKE}/metadata.db"  # of `--persistence-backend db`


def keep_records() -> None:
    """Make Snakemake keep its records in RECORDS; those that it had before are moved there.

    Where both are there, those of the results hold: they came with them. Where nothing can be written, all stays as
    it is.
    """
    if os.path.islink(_LINK) and os.path.isdir(_LINK):
        return
    try:
        os.makedirs(f"{_SNAKEMAKE}/incomplete", exist_ok=True)  # without it Snakemake takes the records for old ones
        if os.path.isdir(_LINK) and not os.path.islink(_LINK):
            if os.path.isdir(RECORDS):
                shutil.rmtree(_LINK)
            else:
                os.makedirs(os.path.dirname(RECORDS), exist_ok=True)
                shutil.move(_LINK, RECORDS)
        os.makedirs(RECORDS, exist_ok=True)
        if not os.path.islink(_LINK):
            os.symlink(os.path.relpath(RECORDS, _SNAKEMAKE), _LINK)
    except OSError:
        return


def record_own_jobs() -> None:
    """Called in a job of a queue: its own Snakemake records what made its outputs.

    Else only the run that sent it does, and what a job makes after its run died would be made once more. Snakemake does
    so where it sends all jobs at once (`immediate_submit`) and ends before they do.
    """
    from snakemake import persistence

    kind = getattr(persistence, "PersistenceBase", None)  # another version of Snakemake: jobs are made once more
    if kind is None:
        return
    finished = kind.finished

    async def recorded(self, job):
        settings = self.dag.workflow.remote_execution_settings
        before, settings.immediate_submit = settings.immediate_submit, True
        try:
            await finished(self, job)
        finally:
            settings.immediate_submit = before

    kind.finished = recorded


def unrecorded(paths: Iterable[str]) -> list[str]:
    """Those of the files that exist, and that no record says what made them.

    A file that Snakemake knows to be half-made is not among them: it is made anew anyway.
    """
    if os.path.exists(_DATABASE) or not os.path.isdir(_LINK):
        return []
    known = {*os.listdir(_LINK), *os.listdir(f"{_SNAKEMAKE}/incomplete")}
    longest = os.pathconf(_LINK, "PC_NAME_MAX") - 1
    return [
        path
        for path in paths
        if (name := urlsafe_b64encode(path.encode()).decode()) not in known
        and os.path.exists(path)
        and not (len(name) > longest and _has_long_record(name, longest))
    ]


def _has_long_record(name: str, longest: int) -> bool:
    """Whether a record stands under a name that is cut into folders."""
    parts = [name[start : start + longest] for start in range(0, len(name), longest)]
    parts = ["@" + part for part in parts[:-1]] + parts[-1:]
    return any(Path(folder, *parts).exists() for folder in (_LINK, f"{_SNAKEMAKE}/incomplete"))


def outdate(paths: Iterable[str]) -> list[str]:
    """Make files, and folders of a rule, older than what they are made from, so that Snakemake makes them anew.

    Returns:
        paths
    """
    paths = list(paths)
    for path in paths:
        dated = f"{path}/.snakemake_timestamp" if os.path.isdir(path) else path
        with contextlib.suppress(OSError):  # another user's, which is said before anything runs
            os.utime(dated, (_LONG_AGO, _LONG_AGO))
    return paths
