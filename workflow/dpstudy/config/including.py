"""A study's file, and what several studies share: it stands once, in a file that they include."""

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


def read_config(path: str | os.PathLike) -> dict:
    """The config in a file, with what it includes.

    Raises:
        StudyError: it, or a file that it includes, is not there, is not YAML, or holds no keys.
    """
    config = read_alone(Path(path))
    try:
        check_keys(Path(path))
        return with_included(config, [path])
    except StudyError as error:
        raise StudyError(f"{path}: {error}") from None


def read_alone(path: Path) -> dict:
    """The keys in a file, and nothing of what it includes.

    Raises:
        StudyError: it is not there, is not YAML, or holds no keys.
    """
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, IsADirectoryError):
        names = [str(file) for file in (Path("config.yaml"), *sorted(Path("studies").glob("*.yaml")))]
        stems = {Path(name).stem: name for name in names}
        near = f" (did you mean {stems[path.stem]!r}?)" if path.stem in stems else suggestion(str(path), names)
        raise StudyError(
            f"{path}: no such file{near}; a study is a YAML file such as config.yaml or those in studies/"
        ) from None
    except UnicodeDecodeError:
        raise StudyError(f"{path}: not a text in UTF-8; save it so") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        why = getattr(error, "problem", None) or error
        raise StudyError(f"{path}: not YAML{where}: {why}; mend the line, or the one before it") from None
    if not isinstance(content, dict):
        raise StudyError(f"{path}: holds no keys of a study; config.yaml is one, and explains each key")
    return content


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
        near = [
            str(Path(name).parent / each.name) for folder in folders for each in (folder / name).parent.glob("*.yaml")
        ]
        raise StudyError(f"{INCLUDE}: there is no file {name!r} beside the study{suggestion(name, near)}")
    content = read_alone(path)
    check_keys(path)
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
