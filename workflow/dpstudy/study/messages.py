"""What a schema violation says to a person: the offending key, what is wrong, and what is allowed."""

import difflib
import re
from collections.abc import Iterable

from jsonschema import ValidationError


def explain(error: ValidationError) -> str:
    """One sentence for one violation."""
    place = _place(error.absolute_path)
    if error.validator in ("additionalProperties", "unevaluatedProperties"):
        return _unknown_key(error, place)
    if error.validator == "required":
        missing = re.match(r"'(.+?)' is a required property", error.message)
        return f"{place or 'the config'}: the key {missing.group(1)!r} is missing{_described(error, missing.group(1))}"
    if error.validator == "enum":
        return f"{place}: {error.instance!r} is not one of {_listed(error.validator_value)}{_suggestion(error.instance, error.validator_value)}"
    if error.validator == "anyOf":
        return f"{place}: {error.instance!r} is none of {_listed(_shape(option) for option in error.validator_value)}"
    if error.validator == "pattern" or error.validator == "type":
        expected = error.schema.get("description") or f"of type {error.validator_value}"
        quoted = "; quote it" if error.validator_value == "string" and isinstance(error.instance, int | float) else ""
        return f"{place}: {error.instance!r} must be {expected}{quoted}"
    if error.validator in ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"):
        words = {"minimum": "at least", "exclusiveMinimum": "more than", "maximum": "at most", "exclusiveMaximum": "less than"}
        return f"{place}: {error.instance!r} must be {words[error.validator]} {error.validator_value}"
    if error.validator == "uniqueItems":
        return f"{place}: {error.instance!r} names something twice"
    if error.validator in ("minItems", "minProperties"):
        return f"{place}: must not be empty"
    if error.validator == "maxProperties":
        return f"{place}: is {error.schema.get('description', 'too long')}; leave it out"
    return f"{place}: {error.message}"


def _place(path: Iterable) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else (f".{part}" if text else str(part))
    return text


def _unknown_key(error: ValidationError, place: str) -> str:
    allowed = sorted(error.schema.get("properties", {}))
    if error.validator == "unevaluatedProperties":
        allowed = sorted({*allowed, *re.findall(r"\w+", error.schema.get("x-allowed", ""))})
    names = re.findall(r"'([^']+)'", error.message.split("(", 1)[-1])
    unknown = [name for name in names if name in error.instance and name not in allowed] or names
    name = unknown[0]
    where = f"{place}.{name}" if place else name
    return f"{where}: unknown key{_suggestion(name, allowed)}; allowed here: {', '.join(allowed)}"


def suggestion(name: object, allowed: Iterable[str]) -> str:
    """' (did you mean ...?)' where a close name exists."""
    return _suggestion(name, allowed)


def _suggestion(name: object, allowed: Iterable) -> str:
    close = difflib.get_close_matches(str(name), [str(value) for value in allowed], 1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _described(error: ValidationError, key: str) -> str:
    described = error.schema.get("properties", {}).get(key, {}).get("description")
    return f" ({described})" if described else ""


def _shape(option: dict) -> str:
    if "const" in option:
        return repr(option["const"])
    if "enum" in option:
        return _listed(option["enum"])
    bound = f" above {option['exclusiveMinimum']}" if "exclusiveMinimum" in option else ""
    bound = f" of at least {option['minimum']}" if "minimum" in option else bound
    kind = {"object": f"an object with {_listed(option.get('properties', {}))}"}.get(option.get("type"), f"a {option.get('type')}")
    return kind + bound


def _listed(values: Iterable) -> str:
    return ", ".join(value if isinstance(value, str) and " " in value else repr(value) for value in values)
