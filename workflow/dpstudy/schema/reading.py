"""Reading the JSON schemas of workflow/dpstudy/schemas, and filling in their defaults."""

import copy
import functools
import operator
from pathlib import Path
from typing import Any

import yaml

from dpstudy.core.errors import StudyError

FOLDER = Path(__file__).parents[1] / "schemas"
_LONGEST = 1000  # characters of a message, which repeats what is wrong


def safe_loader() -> type:
    """The loader of yaml.safe_load, or its C version where available."""
    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_yaml(path: Path) -> Any:
    """The content of a YAML file of the repository.

    Raises:
        StudyError: it is missing, or not YAML.
    """
    try:
        return safe_loader()(path.read_text(encoding="utf-8")).get_single_data()
    except FileNotFoundError:
        raise StudyError(f"{path}: no such file; it belongs to the repository, restore it") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f": line {mark.line + 1}" if mark else ""
        raise StudyError(f"{path}{where}: not YAML: {getattr(error, 'problem', None) or error}") from None


@functools.cache
def schema(name: str) -> dict:
    """The schema workflow/dpstudy/schemas/{name}.schema.yaml, with the readers and extractors whose keys it lists."""
    content = read_yaml(FOLDER / f"{name}.schema.yaml")
    for node, key in (("source", "reader"), ("features", "extractor")) if name == "config" else ():
        node = content["$defs"][node]
        node["properties"][key]["enum"] = list(node[f"x-{key}s"])
    if name == "bundle":
        content["$defs"] = schema("config")["$defs"]
    return content


def fill_defaults(content: object, node: dict, root: dict) -> None:
    """Fill the defaults of the schema `node` into `content`, in place and recursively."""
    while "$ref" in node:
        node = _merged(_target(node, root), {key: value for key, value in node.items() if key != "$ref"})
    if isinstance(content, dict):
        for key, child in node.get("properties", {}).items():
            if key not in content and "default" in child:
                content[key] = copy.deepcopy(child["default"])
            elif key not in content and "$ref" in child:
                if (default := _target(child, root).get("default")) is not None:
                    content[key] = copy.deepcopy(default)
            if key in content:
                fill_defaults(content[key], child, root)
        extra = node.get("additionalProperties")
        if isinstance(extra, dict):
            for key in content.keys() - node.get("properties", {}).keys():
                fill_defaults(content[key], extra, root)
    elif isinstance(content, list) and isinstance(node.get("items"), dict):
        for item in content:
            fill_defaults(item, node["items"], root)


def _target(node: dict, root: dict) -> dict:
    return functools.reduce(operator.getitem, node["$ref"].removeprefix("#/").split("/"), root)


def _merged(below: dict, above: dict) -> dict:
    return below | above | {"properties": below.get("properties", {}) | above.get("properties", {})}


def check(content: object, name: str, where: str) -> None:
    """Validate a document (a ledger, metrics) against its schema.

    Raises:
        StudyError: it does not fit; names the place.
    """
    from jsonschema import Draft202012Validator

    for error in Draft202012Validator(schema(name)).iter_errors(content):
        place = ".".join(map(str, error.absolute_path)) or "the document"
        raise StudyError(f"{where}: {place}: {error.message[:_LONGEST]}")
