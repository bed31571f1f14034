"""`dpstudy wipe`: delete everything derived from private records at the end of a study, except what may be published.

The book of what was spent stays, beside the data too: what is spent stays spent when files are gone.
"""

import fcntl
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from dpstudy.core.at_work import here, slurm_jobs
from dpstudy.core.errors import StudyError
from dpstudy.plan import paths
from dpstudy.plan.first_spending import ask_on_terminal
from dpstudy.plan.internals import SCRIPTS
from dpstudy.privacy.spending import BOOK

_KEPT = (BOOK, paths.TOTAL, paths.RELEASES)  # they reveal no more about a record than was paid for with privacy budget
_STATE = ".snakemake"
_ABOUT = {  # folders of results, and what of private records is in them
    "data": "the images, and the table's labels, persons and groups",
    "features": "what was computed of each image",
    "private": "sums over records, without noise",
    "dedup": "which images are alike",
    "tuning": "scores of searches",
    "cells": "scores of each test record, and models",
    "runs": "scores of each test record, and models",
    "privacy": "models that were paid for, with scores of each test record; certificates",
    "logs": "messages that may name rows, labels and persons",
    "benchmarks": "how long jobs took",
    "code": "hashes of the program",
    "records": "Snakemake's notes, which name files",
    "fits": "what was made of public images",
    "backbones": "what was made of public images",
}
_OTHERS = "statistics of test records, without noise"
# Only what a study creates in its results: other files there belong to the user.
_MADE = {value.split("/")[1] for value in vars(paths).values() if str(value).startswith(f"{paths.RESULTS}/")}
_MADE |= {*_ABOUT, "snakemake-report.html"}
# What no other workflow is likely to have there. An owner may have removed any of it by hand.
_OF_STUDIES = (
    paths.DATA_MANIFEST,
    paths.FEATURES_MANIFEST,
    paths.CELL_FOLDER,
    paths.SEED_FOLDER,
    f"{paths.RESULTS}/privacy/*",
    f"{paths.RESULTS}/private/statistics",
    f"{paths.RESULTS}/code",
    f"{paths.RESULTS}/records",
    f"{_STATE}/dpstudy*",
)


def wipe(folder: str, yes: bool) -> int:
    """List the files derived from private records in a results folder and delete them; the exit status.

    Args:
        folder: that a study was run in.
        yes: ask nothing.

    Raises:
        StudyError: there is no such folder or nothing in it, a run is under way, or the answer was no.
    """
    place = Path(folder)
    if not place.is_dir():
        raise StudyError(f"{folder}: no such folder; name the one that the study was run in (make wipe IN=FOLDER)")
    _refuse_running(place)
    left = _left(place)
    if not _has_study(place):
        others = ", ".join(path.name for path, _ in left)
        unless = f", unless one whose other files were removed made {others}: remove that by hand" if others else ""
        raise StudyError(f"{place / paths.RESULTS}: nothing is left of private records: no study was run there{unless}")
    theirs = "".join(f"  stays: {path}, which no study makes\n" for path in _results(place) if path.name not in _MADE)
    if not left:
        print(theirs, end="")
        raise StudyError(f"{place / paths.RESULTS}: nothing is left of private records")
    for path, about in left:
        print(f"  {_size(path):>9}  {path}  {about}")
    kept = [str(place / name) for name in _KEPT if (place / name).exists()]
    untouched = "your images and table, and the budget log beside them, are not touched"
    print(f"  stays: {', '.join(kept) or 'nothing'}; {untouched}\n{theirs}", end="")
    if not yes:
        answer = ask_on_terminal("Remove these? Models that were paid for cannot be made again. [y/N] ")
        if answer is None:
            raise StudyError(
                f"nothing was removed: nobody is here to say yes; `dpstudy wipe --in {folder} --yes` (make wipe "
                f"IN={folder} YES=1) removes them"
            )
        if answer.strip().casefold() not in ("y", "yes"):
            raise StudyError("nothing was removed")
    for path, _ in sorted(left, key=lambda one: one[0].name in ("code", _STATE)):  # what tells of a run goes last
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    for parent in (place / paths.RESULTS / "privacy", place / paths.RESULTS):
        if parent.is_dir() and not any(parent.iterdir()):
            parent.rmdir()
    print("removed. A disk may hold removed files until it writes over them; backups hold what they held")
    return 0


def _refuse_running(place: Path) -> None:
    """Refuse while anything may write there: a run (workflow/run.py), plain Snakemake, or jobs that either left.

    Raises:
        StudyError: says what does.
    """
    if _is_run(place):
        raise StudyError(f"{place}: a run is under way there; wait for it, or stop it")
    if jobs := slurm_jobs(place):
        raise StudyError(
            f"{place}: jobs of a run are in SLURM's queue ({' '.join(jobs)}); wait for them, or scancel them"
        )
    if processes := [*here("snakemake", folder=place), *here("python", SCRIPTS, place)]:
        numbers = ", ".join(str(process.pid) for process in processes)
        raise StudyError(f"{place}: Snakemake or its jobs are at work there (process {numbers}); wait, or stop them")
    locks = place / _STATE / "locks"
    if locks.is_dir() and any(locks.iterdir()):
        raise StudyError(
            f"{place}: Snakemake has locked it, so that a run may be under way on another machine; wait for it, or if "
            f"it was killed, remove {locks}"
        )


def _is_run(place: Path) -> bool:
    try:
        with open(place / _STATE / "dpstudy-run", "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False  # there was never a run, or the disk has no locks
    return False


def _has_study(place: Path) -> bool:
    """Whether anything in a folder shows that a study was run there."""
    return any(any(place.glob(re.sub(r"{\w+}", "*", pattern))) for pattern in _OF_STUDIES)


def _left(place: Path) -> list[tuple[Path, str]]:
    """What is to be removed, and what it has of private records."""
    kept = {place / name for name in _KEPT}
    leftovers: list[tuple[Path, str]] = []
    for path in _results(place):
        if path in kept or path.name not in _MADE:
            continue
        about = _ABOUT.get(path.name, _OTHERS)
        if any(path in keep.parents for keep in kept if keep.exists()):
            leftovers += [(inner, about) for inner in sorted(path.iterdir()) if inner not in kept]
        else:
            leftovers.append((path, about))
    if leftovers and (place / _STATE).is_dir():
        leftovers.append((place / _STATE, "Snakemake's notes, which name files"))
    return leftovers


def _results(place: Path) -> list[Path]:
    results = place / paths.RESULTS
    return sorted(results.iterdir()) if results.is_dir() else []


def _size(path: Path) -> str:
    files: Iterable[Path] = path.rglob("*") if path.is_dir() and not path.is_symlink() else [path]
    total = sum(file.lstat().st_size for file in files if not file.is_dir())
    return f"{total / 1e6:.1f} MB"
