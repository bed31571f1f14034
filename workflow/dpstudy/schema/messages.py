"""Error messages for schema violations: the offending key, what is wrong, and what is allowed."""

import math
import re
from collections.abc import Iterable
from datetime import date

from jsonschema import ValidationError

from dpstudy.core.errors import StudyError
from dpstudy.core.suggest import suggestion
from dpstudy.schema.reading import schema

_TRUTHS = " (YAML reads no, off, yes and on as false and true)"
_LONGEST = 200  # characters of a value that a message repeats
_TYPES = {
    "object": "a mapping of keys to values",
    "array": "a list",
    "integer": "an integer",
    "boolean": "true or false",
}
UNKNOWN = ("additionalProperties", "unevaluatedProperties")  # what refuses a key
_BOUNDS = {
    "minimum": "at least",
    "exclusiveMinimum": "more than",
    "maximum": "at most",
    "exclusiveMaximum": "less than",
}


def explain(error: ValidationError, prefix: str = "") -> str:
    """A sentence for one violation; `prefix` is where the checked document stands in the config."""
    place = ".".join(part for part in (prefix, _place(error.absolute_path)) if part).replace(".[", "[")
    if error.validator in UNKNOWN:
        return _unknown_key(error, place)
    place = place or "the config"
    if error.validator == "required" and (match := re.match(r"'(.+?)' is a required property", error.message)):
        missing = match[1]
        node = error.schema.get("properties", {}).get(missing, {})
        return f"{place}: the key {missing!r} is missing{_described(node)}"
    if error.validator == "enum":
        allowed = error.validator_value
        return (
            f"{place}: {_quoted(error.instance)} is not one of {_listed(allowed)}{suggestion(error.instance, allowed)}"
        )
    if error.validator == "anyOf":
        shapes = " nor ".join(_shape(option) for option in error.validator_value)
        text = any(option.get("type") == "string" for option in error.validator_value)
        hint = _to_quote(error.instance) if text and isinstance(error.instance, bool | date) else ""
        return f"{place}: {_quoted(error.instance)} is neither {shapes}{hint}"
    if error.validator == "pattern":
        wanted = error.schema.get("x-spelled") or error.schema.get("description") or "spelled otherwise"
        hint = f"; quote it{_TRUTHS}" if error.instance in ("False", "True") else ""  # as YAML has no and yes, as a key
        return f"{place}: {_quoted(error.instance)} must be {wanted}{hint}"
    if error.validator == "type":
        wanted = f"{_type(error.validator_value)}{_described(error.schema)}"
        if isinstance(error.instance, float) and not math.isfinite(error.instance):
            return f"{place}: {error.instance} is no finite number"
        return f"{place}: {_quoted(error.instance)} must be {wanted}{_about_quotes(error)}"
    if error.validator in _BOUNDS:
        return f"{place}: {_quoted(error.instance)} must be {_BOUNDS[error.validator]} {error.validator_value}"
    if error.validator == "uniqueItems":
        return f"{place}: {_quoted(error.instance)} names something twice"
    if error.validator in ("minItems", "maxItems") and len(error.instance):
        bound = "at least" if error.validator == "minItems" else "at most"
        return f"{place}: {_quoted(error.instance)} must hold {bound} {error.validator_value} values"
    if error.validator in ("minItems", "minProperties", "minLength"):
        return f"{place}: must not be empty"
    if error.validator == "maxProperties":
        return f"{place}: is {error.schema.get('description', 'too long')}; leave it out"
    if error.validator == "oneOf":
        keys = [key for option in error.validator_value for key in option.get("required", [])]
        return f"{place}: give exactly one of {_listed(keys)}"
    return f"{place}: {error.message}"


def within_shape(error: ValidationError) -> ValidationError:
    """The violation within the best-fitting option of an anyOf, for a mapping or list that fits none of them."""
    if error.validator != "anyOf" or not isinstance(error.instance, dict | list):
        return error
    by_option: dict[object, list[ValidationError]] = {}
    for violation in error.context:
        by_option.setdefault(violation.schema_path[0], []).append(violation)
    options = [
        violations
        for violations in by_option.values()
        if not any(e.validator in ("type", "enum", "const") and not e.path for e in violations)
    ]
    return min(options[0], key=lambda violation: len(violation.path)) if len(options) == 1 else error


def _place(path: Iterable) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else (f".{_shown(part)}" if text else _shown(part))
    return text


def _quoted(value: object) -> str:
    """A value as it stands in a sentence, or as much of it as a reader needs to find it."""
    text = str(value) if isinstance(value, date) else repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _shown(key: str) -> str:
    """A key as it stands in a sentence: one of several lines would tear it apart."""
    return key if key.isprintable() else repr(key)


def _unknown_key(error: ValidationError, place: str) -> str:
    allowed = set(error.schema.get("properties", {}))
    if "$ref" in error.schema:  # a definition of the config's schema that this one extends
        allowed |= set(schema("config")["$defs"][error.schema["$ref"].split("/")[-1]]["properties"])
    unknown = [key for key in sorted(error.instance) if key not in allowed] or sorted(error.instance)
    name = next((key for key in unknown if repr(key) in error.message), unknown[0])
    places = [f"{place}.{_shown(key)}" if place else _shown(key) for key in (name, *unknown) if key in unknown]
    others = [where for where in dict.fromkeys(places[1:]) if where != places[0] and error.validator[:3] == "add"]
    more = f", and so {'is' if len(others) == 1 else 'are'} {', '.join(others)}" if others else ""
    return f"{places[0]}: unknown key{suggestion(name, allowed)}{more}; allowed here: {', '.join(sorted(allowed))}"


def check_known(place: str, name: str, allowed: Iterable[str], what: str) -> None:
    """Refuse a name that is not in `allowed`.

    Raises:
        StudyError: naming the place, the name, what it should be, and what there is.
    """
    if name not in allowed:
        listed = ", ".join(allowed) or "none is defined"
        raise StudyError(f"{place}: unknown {what} {name!r}{suggestion(name, allowed)}; there is {listed}")


def _about_quotes(error: ValidationError) -> str:
    """What to do about text where a number is wanted, or the other way round."""
    if error.validator_value == "string":
        return _to_quote(error.instance)
    text = error.instance if isinstance(error.instance, str) else ""
    if error.validator_value in ("integer", "number") and re.fullmatch(r"-?\d+(\.\d*)?", text):
        return "; leave out the quotes"
    return ""


def _to_quote(value: object) -> str:
    """What to do about a value that was meant as text; "" where nothing is to be seen of that."""
    if isinstance(value, date):
        return "; quote it (YAML reads it as a date)"
    if isinstance(value, int | float):
        return f"; quote it{_TRUTHS if isinstance(value, bool) else ''}"
    return ""


def _described(node: dict) -> str:
    description = node.get("description", "").rstrip(".")
    return f" ({description})" if description else ""


def _type(name: str | list[str]) -> str:
    return " or ".join(_type(one) for one in name) if isinstance(name, list) else _TYPES.get(name, f"a {name}")


def _shape(option: dict) -> str:
    if "$ref" in option:
        option = schema("config")["$defs"][option["$ref"].split("/")[-1]]
    if "const" in option:
        return repr(option["const"])
    if "enum" in option:
        return " nor ".join(map(repr, option["enum"]))
    if option.get("type") == "object":
        return f"a mapping with {_listed(option.get('properties', {}))}"
    bound = f" above {option['exclusiveMinimum']}" if "exclusiveMinimum" in option else ""
    bound = f" of at least {option['minimum']}" if "minimum" in option else bound
    bound += f" and below {option['exclusiveMaximum']}" if "exclusiveMaximum" in option else ""
    if option.get("minItems", 0) == option.get("maxItems"):
        bound = f" of {option['minItems']} values"
    return _type(option.get("type", "list")) + bound


def _listed(values: Iterable) -> str:
    return ", ".join(map(repr, values))
