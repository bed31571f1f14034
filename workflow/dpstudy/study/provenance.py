"""What made a result: hashes of its config and of the library's code, and versions of what it ran on."""

import functools
import hashlib
import importlib.metadata
import json
import platform
from collections.abc import Iterable, Mapping, Sequence

from dpstudy.files import sha256

_PACKAGES = ("dpstudy", "numpy", "scipy", "torch", "dp-accounting", "pyarrow", "snakemake")


def config_hash(options: Mapping) -> str:
    """A hash of plain config values, the same for equal values in any order of keys."""
    text = json.dumps(options, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def cell_fingerprint(options: Mapping, dataset: Mapping, seeds: Sequence[int], noise: str, evaluation: Mapping) -> str:
    """The config hash of a cell: all that its result depends on besides data and code."""
    return config_hash(
        {"options": options, "dataset": dataset, "seeds": list(seeds), "noise": noise, "evaluation": evaluation}
    )


@functools.cache
def _file_hash(path: str) -> str:
    return sha256(path)


def library_hash(files: Iterable[str]) -> str:
    """A hash of the contents of source files, in sorted order of their names."""
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(_file_hash(path).encode())
    return digest.hexdigest()[:16]


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that results depend on."""
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
