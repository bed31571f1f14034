"""What several studies share stands once, in a file that they include."""

import copy
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from dpstudy.core.errors import StudyError
from dpstudy.core.suggest import suggestion
from dpstudy.schema.spelling import check_keys

INCLUDE = "include"
_SECTIONS = {"datasets", "public", "backbones", "fits", "features", "methods", "tables", "figures"}


def read_config(path: str | os.PathLike) -> Any:
    """The config in a file, with what it includes.

    Raises:
        StudyError: an included file is not there, or holds no config.
        OSError, UnicodeDecodeError, yaml.YAMLError: the file itself cannot be read.
    """
    return with_included(yaml.safe_load(Path(path).read_text(encoding="utf-8")), [path])


def with_included(raw: Any, files: Sequence[str | os.PathLike]) -> Any:
    """A config merged over the files that its key `include` names, relative to the folder of one of `files`, of which
    the last counts first.

    Mappings are merged key by key, as Snakemake merges several config files; anything else is replaced. An entry of
    `datasets`, `methods` and the like that is null takes out an included one. Of several files the later ones count.

    Raises:
        StudyError: a file is not there, holds no config, or includes others itself.
    """
    if not isinstance(raw, dict) or INCLUDE not in raw:
        return raw
    named = raw[INCLUDE]
    names = named if isinstance(named, list) else [named]
    if not names or not all(isinstance(name, str) and name for name in names):
        raise StudyError(f"{INCLUDE}: must be the name of a file, or a list of them, got {named!r}")
    config: dict = {}
    for name in names:
        config = _merged(config, _read(name, [Path(file).parent for file in reversed(files)] or [Path()]))
    config = _merged(config, {key: value for key, value in raw.items() if key != INCLUDE})
    return {key: _without_null(value) if key in _SECTIONS else value for key, value in config.items()}


def _read(name: str, folders: Sequence[Path]) -> dict:
    path = next((folder / name for folder in folders if (folder / name).is_file()), None)
    if path is None:
        near = [str(each.relative_to(folder)) for folder in folders for each in sorted(folder.glob("*/*.yaml"))]
        raise StudyError(f"{INCLUDE}: there is no file {name!r} beside the study{suggestion(name, near)}")
    check_keys(path)
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise StudyError(f"{INCLUDE}: {name}: not YAML ({str(error).splitlines()[0]})") from None
    if not isinstance(content, dict):
        raise StudyError(f"{INCLUDE}: {name}: holds no keys of a study")
    if INCLUDE in content:
        raise StudyError(f"{INCLUDE}: {name}: an included file cannot include others; name them in the study")
    return content


def _merged(below: Mapping, above: Mapping) -> dict:
    found = copy.deepcopy(dict(below))
    for key, value in above.items():
        both = isinstance(value, dict) and isinstance(found.get(key), dict)
        found[key] = _merged(found[key], value) if both else copy.deepcopy(value)
    return found


def _without_null(section: Any) -> Any:
    return (
        {name: entry for name, entry in section.items() if entry is not None} if isinstance(section, dict) else section
    )
