"""Checks of a method's schema and files before a study begins, for authors of new methods."""

import functools
import json
from collections.abc import Iterator, Mapping

from dpstudy.core.entry_points import entry_points
from dpstudy.core.errors import StudyError
from dpstudy.core.suggest import suggestion
from dpstudy.methods import module_name
from dpstudy.provenance.code import closure
from dpstudy.schema.methods import method_schema
from dpstudy.schema.reading import FOLDER

_ANNOTATIONS = {"$schema", "$id", "title", "description", "default", "$defs", "$comment", "examples", "then", "else"}
_OF_ONE = ("items", "not", "if", "then", "else", "additionalProperties", "contains")  # keywords that hold a schema
_OF_SEVERAL = ("anyOf", "oneOf", "allOf", "prefixItems")
_OF_NAMED = ("properties", "$defs", "patternProperties")


def check_method(name: str) -> None:
    """Check the schema and the files of a method.

    Raises:
        StudyError: the schema is none, or has a keyword that means nothing; a module of the method is missing or no
            Python; or two packages bring a method of this name.
    """
    if fault := _fault(json.dumps(method_schema(name), default=repr)):
        raise StudyError(f"schema of method {name!r}: {fault}")
    packages = [entry.value for entry in entry_points() if entry.name == name]
    if packages and (FOLDER / "methods" / f"{name}.schema.yaml").exists():
        raise StudyError(f"method {name!r}: dpstudy has one of this name, and so has {packages[0]}: rename that")
    closure(module_name(name))


@functools.cache  # a study asks for each of its entries, and holding a schema against its own takes long
def _fault(text: str) -> str | None:
    """What is wrong with a schema (JSON), or None."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    content = json.loads(text)
    try:
        Draft202012Validator.check_schema(content)
    except SchemaError as error:
        place = ".".join(map(str, error.absolute_path))
        return f"{place or 'the whole'}: {error.message}"
    known = sorted({*Draft202012Validator.VALIDATORS, *_ANNOTATIONS})
    for place, node in _nodes(content, ""):
        for key in node:
            if key not in known and not key.startswith("x-"):
                return f"{place or 'the whole'}: unknown keyword {key!r}{suggestion(key, known)}"
    return None


def _nodes(schema: object, place: str) -> Iterator[tuple[str, Mapping]]:
    """Every schema within a schema, with the dotted path to it."""
    if not isinstance(schema, Mapping):
        return
    yield place, schema
    inner = [(key, schema.get(key)) for key in _OF_ONE]
    inner += [(f"{key}.{number}", node) for key in _OF_SEVERAL for number, node in enumerate(schema.get(key, ()))]
    inner += [(f"{key}.{name}", node) for key in _OF_NAMED for name, node in schema.get(key, {}).items()]
    for path, node in inner:
        yield from _nodes(node, f"{place}.{path}".removeprefix("."))
