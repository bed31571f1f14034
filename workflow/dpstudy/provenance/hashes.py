"""Hashes of configs and of the library's code, and versions of packages, by which results name what made them."""

import functools
import hashlib
import importlib.metadata
import json
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from dpstudy import __version__
from dpstudy.core.files import atomic, sha256

_PACKAGES = ("numpy", "scipy", "torch", "dp-accounting", "pyarrow", "snakemake")


def config_hash(options: Mapping) -> str:
    """A hash of plain config values that does not depend on the order of keys."""
    text = json.dumps(options, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def cell_fingerprint(
    options: Mapping, dataset: Mapping, seeds: Sequence[int], noise: str, on_training: bool, origin: str
) -> str:
    """The config hash of a cell: all that its training depends on except data and code.

    Args:
        on_training: models are scored on their training records too.
        origin: a hash of how the config makes what the cell reads.
    """
    hashed = {"options": options, "dataset": dataset, "seeds": list(seeds), "noise": noise, "on_training": on_training}
    return config_hash(hashed | {"origin": origin})


def origin_of_scores(made_by: Mapping) -> str:
    """A hash of what made a model, the same for a seed's own job and its cell, from a run's `made_by`."""
    return config_hash({key: value for key, value in made_by.items() if key not in ("config", "deciding")})


def evaluation_fingerprint(asked: Mapping, library: str) -> str:
    """A hash of how scores became metrics: the options of the evaluation, and its code."""
    return config_hash({"asked": asked, "library": library})


_listed: dict[str, tuple[str, ...]] = {}  # what this process has written or seen


_file_hash = functools.cache(sha256)


def library_hash(files: Iterable[str]) -> str:
    """A hash of the contents of source files, sorted by name."""
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(_file_hash(path).encode())
    return digest.hexdigest()[:16]


def list_code(files: Sequence[str], path: str) -> str:
    """Write a list of source files with their SHA-256, as `sha256sum` prints it, unless `path` holds it already.

    A thousand cells of one method run on the same seventy files: this one stands for them among their inputs, since
    Snakemake takes its time over each input of each job.

    Returns:
        path

    Raises:
        StudyError, OSError: it cannot be written.
    """
    known = os.path.abspath(path)
    if _listed.get(known) != tuple(files):
        text = "".join(f"{_file_hash(file)}  {file}\n" for file in sorted(files))
        if not os.path.exists(path) or Path(path).read_text(encoding="utf-8") != text:
            with atomic(path) as temporary:
                temporary.write_text(text, encoding="utf-8")
        _listed[known] = tuple(files)
    return path


def listed_code(path: str) -> list[str]:
    """The source files in a list that `list_code` wrote."""
    return [line.partition("  ")[2] for line in Path(path).read_text(encoding="utf-8").splitlines()]


def versions() -> dict[str, str]:
    """The versions of Python and of the packages that results depend on."""
    ours = {"python": platform.python_version(), "dpstudy": __version__}  # not what an environment calls installed
    return ours | {name: version for name in _PACKAGES if (version := _version(name))}


@functools.cache
def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
