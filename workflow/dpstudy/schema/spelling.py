"""Traps of YAML 1.1 in configs: duplicate keys, numbers read as text, and text read as numbers (010, 12:30)."""

import copy
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from dpstudy.core.errors import StudyError
from dpstudy.schema.reading import safe_loader
from dpstudy.schema.validating import validator

_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
_OLD_NUMBER = re.compile(r"[-+]?(0[0-9_]+|[0-9_]+(:[0-5]?[0-9])+(\.[0-9_]*)?)")  # in base 8, or 60
_MERGE = "tag:yaml.org,2002:merge"
_NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?")
_INTEGER = re.compile(r"[-+]?\d+")
_TRUTHS = {"true": True, "false": False}


def check_keys(file: str | Path) -> None:
    """Refuse a config file with a duplicate key, of which YAML silently keeps the last, or with 010 or 12:30.

    YAML would read these as 8 and 750.

    Of merged mappings (`<<`) a key may be overridden, as YAML has it.

    Raises:
        StudyError: the key with the lines of both, or the number with its line.
    """
    try:
        with open(file, encoding="utf-8") as text:
            loader = safe_loader()(text)
            root = loader.get_single_node()
            wrong = next(_misread(root, "", loader, set()), "") if root else ""
    except (OSError, UnicodeDecodeError, yaml.YAMLError):  # JSON with tabs, or a pipe: reading it reports errors
        return
    if wrong:
        raise StudyError(wrong)


def _misread(node: yaml.Node, place: str, loader: yaml.Loader, seen: set[int]) -> Iterator[str]:
    if isinstance(node, yaml.ScalarNode) and node.tag in _NUMBERS and _OLD_NUMBER.fullmatch(node.value):
        read = loader.construct_object(node)
        yield (
            f"{place}: line {node.start_mark.line + 1}: YAML reads {node.value} as {read}; quote it where it is a "
            "text, and write the number as usual where it is one"
        )
    if id(node) in seen or not isinstance(node, yaml.CollectionNode):  # a node with an alias is one node
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for number, item in enumerate(node.value):
            yield from _misread(item, f"{place}[{number}]", loader, seen)
        return
    lines: dict[str, int] = {}
    for key, value in node.value:
        if key.tag == _MERGE or not isinstance(key, yaml.ScalarNode):
            continue
        name, line = str(loader.construct_object(key)), key.start_mark.line + 1  # as keys of a config are: text
        where = f"{place}.{name}" if place else name
        if name in lines:
            yield f"{where}: stands twice, in lines {lines[name]} and {line}, and only the last would count; keep one"
        lines[name] = line
        yield from _misread(value, where, loader, seen)


def as_numbers(content: Any, rules: dict) -> Any:
    """A copy in which text that spells a number (1e-3, in YAML 1.1) is one wherever the schema wants a number.

    Text stays text where they allow text; so does what spells no number, for the check that follows to refuse. The same
    holds for true and false, which are text where lists and mappings are given by `--config`.
    """
    return _as_numbers(copy.deepcopy(content), rules, validator()(rules))


def _as_numbers(content: Any, rules: dict, checker: Any) -> Any:
    for error in list(checker.evolve(schema=rules).iter_errors(content)):
        if error.validator == "type" and isinstance(error.instance, str):
            wanted = error.validator_value if isinstance(error.validator_value, list) else [error.validator_value]
            values = _spelled(error.instance)
            spelled = next((value for value in values if any(checker.is_type(value, name) for name in wanted)), None)
        elif error.validator in ("anyOf", "oneOf") and isinstance(error.instance, str | list | dict):
            options = [
                (rule, _as_numbers(copy.deepcopy(error.instance), rule, checker)) for rule in error.validator_value
            ]
            spelled = next((value for rule, value in options if checker.evolve(schema=rule).is_valid(value)), None)
        else:
            continue
        if spelled is None:
            continue
        *path, last = error.absolute_path or (None,)
        if last is None:
            return spelled
        parent = content
        for part in path:
            parent = parent[part]
        parent[last] = spelled
    return content


def _spelled(text: str) -> Iterator[int | float | bool]:
    """The values that a text may spell."""
    if text in _TRUTHS:
        yield _TRUTHS[text]
    if _NUMBER.fullmatch(text) and math.isfinite(number := float(text)):
        if not _INTEGER.fullmatch(text):
            yield number
        if "." not in text and number.is_integer() and abs(number) < 2**53:  # 1.0 is no integer in a config
            yield int(number)
