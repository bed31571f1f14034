"""Reading a config file, merged over the files that it includes; several studies may share an included file."""

import copy
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from dpstudy.core.errors import StudyError
from dpstudy.core.suggest import suggestion
from dpstudy.schema.spelling import check_keys

INCLUDE = "include"
_SECTIONS = {"datasets", "public", "backbones", "fits", "features", "methods", "tables", "figures"}
_WORD = re.compile(r"\{(\w+)\}")


def read_config(path: str | os.PathLike) -> dict:
    """The config in a file, merged over the files that it includes.

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
    """The keys in a config file, without those of included files.

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
    """The config `raw` merged over the files that its key `include` names.

    Names are relative to the folder of one of `files`, of which the last is tried first.

    Mappings are merged key by key, as Snakemake merges several config files; anything else is replaced. An entry of
    `datasets`, `methods` and the like that is null takes out an included one. Of several files the later ones count.
    With {file: NAME, with: {word: value}} each {word} in keys and values of the file is the value.

    Raises:
        StudyError: a file is not there, holds no config, lacks a word, or includes others itself.
    """
    if not isinstance(raw, dict) or INCLUDE not in raw:
        return raw
    named = raw[INCLUDE]
    names = named if isinstance(named, list) else [named]
    folders = [Path(file).parent for file in reversed(files)] or [Path()]
    config: dict = {}
    for entry in names or [named]:
        name, words = _entry(entry)
        config = _merged(config, _filled_in(name, _read(name, folders), words))
    config = _merged(config, {key: value for key, value in raw.items() if key != INCLUDE})
    for section in _SECTIONS & config.keys():
        if isinstance(entries := config[section], dict):
            config[section] = {name: entry for name, entry in entries.items() if entry is not None}
    return config


def _entry(entry: Any) -> tuple[str, Mapping]:
    """The file of an entry of `include`, and what its words stand for."""
    given = entry if isinstance(entry, dict) else {"file": entry}
    name, words = given.get("file"), given.get("with", {})
    if not (isinstance(name, str) and name and isinstance(words, dict) and set(given) <= {"file", "with"}):
        raise StudyError(
            f"{INCLUDE}: must be the name of a file, or a list of them, got {entry!r}; words that a file leaves open "
            "are given as {file: NAME, with: {word: value}}"
        )
    return name, words


def _filled_in(name: str, content: dict, words: Mapping) -> dict:
    fields: set[str] = set()

    def text(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        fields.update(_WORD.findall(value))
        return _WORD.sub(lambda match: str(words.get(match[1], match[0])), value)

    def filled(value: Any) -> Any:
        if isinstance(value, dict):
            return {text(key): filled(one) for key, one in value.items()}
        if isinstance(value, list):
            return [filled(one) for one in value]
        written, whole = text(value), _WORD.fullmatch(value) if isinstance(value, str) else None
        return copy.deepcopy(words[whole[1]]) if whole and whole[1] in words else written

    config = filled(content)
    for word in words:
        if word not in fields:
            raise StudyError(f"{INCLUDE}: {name}: {{{word}}} stands nowhere in it{suggestion(word, sorted(fields))}")
    return config


def _read(name: str, folders: Sequence[Path]) -> dict:
    path = next((folder / name for folder in folders if (folder / name).is_file()), None)
    if path is None:
        files = (each.name for folder in folders for each in (folder / name).parent.glob("*.yaml"))
        near = [str(Path(name).parent / each) for each in files]
        raise StudyError(f"{INCLUDE}: there is no file {name!r} beside the study{suggestion(name, near)}")
    content = read_alone(path)
    check_keys(path)
    if INCLUDE in content:
        raise StudyError(f"{INCLUDE}: {name}: an included file cannot include others; name them in the study")
    return content


def _merged(below: Mapping, above: Mapping) -> dict:
    merged = copy.deepcopy(dict(below))
    for key, value in above.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _merged(merged[key], value) if both else copy.deepcopy(value)
    return merged
