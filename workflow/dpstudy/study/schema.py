"""Reading and filling the JSON schemas of workflow/schemas."""

import copy
import functools
from pathlib import Path

import yaml

from dpstudy.errors import StudyError
from dpstudy.methods import entry_points

FOLDER = Path(__file__).parents[2] / "schemas"
_LONGEST = 1000  # characters of a message, which repeats what is wrong
_SafeLoader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # what yaml.safe_load reads with, in C where it is there


@functools.cache
def schema(name: str) -> dict:
    """The schema workflow/schemas/{name}.schema.yaml; readers and extractors are those whose keys it lists."""
    path = FOLDER / f"{name}.schema.yaml"
    try:
        content = _SafeLoader(path.read_text(encoding="utf-8")).get_single_data()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f": line {mark.line + 1}" if mark else ""
        raise StudyError(f"{path}{where}: not YAML: {getattr(error, 'problem', None) or error}") from None
    for node, key in (("source", "reader"), ("features", "extractor")) if name == "config" else ():
        node = content["$defs"][node]
        node["properties"][key]["enum"] = list(node[f"x-{key}s"])
    if name == "bundle":
        content["$defs"] = schema("config")["$defs"]
    return content


def method_names() -> list[str]:
    """Every method that has a schema, those of other packages (entry points "dpstudy.methods") included."""
    own = [path.name.removesuffix(".schema.yaml") for path in (FOLDER / "methods").glob("*.schema.yaml")]
    return sorted({*own, *(entry.name for entry in entry_points())})


@functools.cache
def method_schema(name: str) -> dict:
    """The schema of one method's entries, with the keys that every entry has.

    A method of another package brings its schema as its module's SCHEMA.
    """
    if (FOLDER / "methods" / f"{name}.schema.yaml").exists():
        content = copy.deepcopy(schema(f"methods/{name}"))
    else:
        content = copy.deepcopy(_of_package(name))
    _check_method_schema(name, content)
    content["properties"] |= {
        "sanitise": {
            "enum": ["full", "clip", "none"],
            "default": "full",
            "description": "clip: no noise; none: neither. Both only at epsilon inf.",
        },
        "accounting": {"enum": schema("config")["properties"]["accounting"]["enum"]},
        "tuned_on": {"type": "string", "default": "nothing"},
        "not_accounted": {
            "type": "array",
            "items": {"type": "string", "minLength": 1},
            "description": "What its ledgers leave out, or should say of its settings: a sentence each.",
        },
        "tuning": schema("tuning"),
        "shared_noise": {
            "type": "boolean",
            "default": False,
            "description": "A control without a guarantee: one noise vector for all classes and steps.",
        },
    }
    return content


def _of_package(name: str) -> dict:
    """The SCHEMA of a method of another package.

    Raises:
        StudyError: several packages have it, its module cannot be imported, or has no SCHEMA.
    """
    entries = [entry for entry in entry_points() if entry.name == name]
    if len({entry.value for entry in entries}) > 1:
        raise StudyError(f"method {name!r}: several packages have it, {', '.join(entry.value for entry in entries)}")
    try:
        return entries[0].load().SCHEMA
    except Exception as error:  # whatever importing somebody's module raises
        raise StudyError(
            f"method {name!r}: {entries[0].value} must be a module with SCHEMA; {type(error).__name__}: {error}"
        ) from error


# Benchmarks that a reader of their own format reads, by the reader: their names, as a method's `x-chosen-on` has them.
BENCHMARKS = {"cifar": ("CIFAR-10", "CIFAR-100"), "idx": ("MNIST", "Fashion-MNIST", "EMNIST letters")}


def _check_method_schema(name: str, content: dict) -> None:
    """What rules ask of a method's schema is there.

    Raises:
        StudyError: it is not.
    """
    if not isinstance(content, dict):
        raise StudyError(f"schema of method {name!r}: must be a mapping of keywords (docs/add-a-method.md)")
    for key, allowed in (("x-reads", ("features", "statistics")), ("x-curve", (True, False))):
        if content.get(key) not in allowed:
            raise StudyError(
                f"schema of method {name!r}: `{key}` is {content.get(key)!r}; must be "
                f"{' or '.join(str(value).lower() for value in allowed)} (docs/add-a-method.md)"
            )
    if content["x-reads"] == "statistics" and not isinstance(content.get("x-per-class"), dict):
        raise StudyError(
            f"schema of method {name!r}: `x-reads: statistics` needs `x-per-class`, the options with which sums of "
            "each class are made too (docs/add-a-method.md)"
        )
    known = [benchmark for names in BENCHMARKS.values() for benchmark in names]
    unknown = set(content.get("x-chosen-on", [])).difference(known)
    if unknown:
        raise StudyError(
            f"schema of method {name!r}: `x-chosen-on` has {', '.join(map(repr, sorted(unknown)))}; must be of "
            f"{', '.join(known)} (docs/add-a-method.md)"
        )
    named = content.get("properties", {}).get("method") == {"const": name}
    if not named or content.get("additionalProperties") is not False:
        raise StudyError(
            f"schema of method {name!r}: must have `additionalProperties: false`, and `method: {{const: {name}}}` "
            "among its properties (docs/add-a-method.md)"
        )


def fill_defaults(content: object, node: dict, root: dict) -> None:
    """Fill the defaults of `node` into `content`, in place and recursively."""
    while "$ref" in node:
        target = root
        for part in node["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        node = _merged(target, {key: value for key, value in node.items() if key != "$ref"})
    if isinstance(content, dict):
        for key, child in node.get("properties", {}).items():
            if key not in content and "default" in child:
                content[key] = copy.deepcopy(child["default"])
            elif key not in content and "$ref" in child:
                default = _default(child, root)
                if default is not None:
                    content[key] = default
            if key in content:
                fill_defaults(content[key], child, root)
        extra = node.get("additionalProperties")
        if isinstance(extra, dict):
            for key in content.keys() - node.get("properties", {}).keys():
                fill_defaults(content[key], extra, root)
    elif isinstance(content, list) and isinstance(node.get("items"), dict):
        for item in content:
            fill_defaults(item, node["items"], root)


def _default(node: dict, root: dict):
    target = root
    for part in node["$ref"].removeprefix("#/").split("/"):
        target = target[part]
    return copy.deepcopy(target.get("default"))


def _merged(below: dict, above: dict) -> dict:
    return below | above | {"properties": below.get("properties", {}) | above.get("properties", {})}


def check(content: object, name: str, where: str) -> None:
    """Hold a document (a ledger, metrics) against its schema.

    Raises:
        StudyError: it does not fit; names the place.
    """
    from jsonschema import Draft202012Validator

    for error in Draft202012Validator(schema(name)).iter_errors(content):
        place = ".".join(map(str, error.absolute_path)) or "the document"
        raise StudyError(f"{where}: {place}: {error.message[:_LONGEST]}")
