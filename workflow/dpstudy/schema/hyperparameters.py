"""Hyper-parameters of a method as dataclass fields: type, range, default, search range and description in one place.

What a value may be is read off the field's type (`Literal["known-noise"] | float`: that word, or a number) and the
limits that `setting` was given. From the same fields `schema_of` makes the schema that configs are held against;
`dpstudy schemas` writes those of the methods here to workflow/dpstudy/schemas/methods, so that reading a config need
import no method.
"""

import dataclasses
import functools
import math
import operator
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from numbers import Real
from typing import Any, ClassVar

from dpstudy.core.errors import StudyError

_KINDS = {float: "number", int: "integer", bool: "boolean", str: "string"}
# Of a setting: what holds of numbers within it, its sign in tables, its keyword in schemas.
_LIMITS = {
    "above": (operator.gt, ">", "exclusiveMinimum"),
    "least": (operator.ge, "≥", "minimum"),
    "below": (operator.lt, "<", "exclusiveMaximum"),
    "most": (operator.le, "≤", "maximum"),
}


@dataclass(frozen=True)
class Setting:
    """The properties of a hyper-parameter besides its type and default.

    Attributes:
        about: a sentence for who sets it.
        above, least, below, most: of numbers: larger than, at least, smaller than, at most.
        choices: of words: one of these; the type's own Literal otherwise.
        search: {"low", "high"} of `tuning: {space: default}`, and "where": the options with which it is searched.
        filled: configs have the default where they leave it out; else they are as if it were not there.
        without: keys that a group of settings does not have here.
        schema: what configs are held against in place of type and limits.
    """

    about: str = ""
    above: float | None = None
    least: float | None = None
    below: float | None = None
    most: float | None = None
    choices: Sequence[str] = ()
    search: Mapping | None = None
    filled: bool = True
    without: Sequence[str] = ()
    schema: Mapping | None = None


_KEY = "dpstudy"


def setting(
    default: Any = dataclasses.MISSING,
    about: str = "",
    *,
    keyed: bool = True,
    hashed: bool = True,
    named: bool = False,
    **facts: Any,
) -> Any:
    """A dataclass field for a hyper-parameter.

    Args:
        default: what it is where it is left out; missing: it must be given.
        about: a sentence for who sets it.
        keyed: it changes what comes out, and so is part of what keys the noise of `fit`.
        named: it is given by its name alone, so that it may lack a default behind others that have one.
        hashed: two values of it can be told apart by a hash (a mapping has none).
        facts: the other attributes of `Setting`.
    """
    known = {_KEY: Setting(about, **facts)}
    return field(default=default, repr=keyed, hash=None if hashed else False, kw_only=named, metadata=known)


class Hyperparameters:
    """The base class of hyper-parameters: nested mappings become their field's type, and values are checked.

    Attributes:
        METHOD: what messages name.
    """

    METHOD: ClassVar[str] = ""

    def __post_init__(self) -> None:
        kind: Any = type(self)
        for each in _settings(kind):
            value = getattr(self, each.name)
            if each.group is not None and isinstance(value, dict):
                value = each.group(**value)
                object.__setattr__(self, each.name, value)
            if problem := each.problem(value):
                raise StudyError(f"{self.METHOD}: {each.name} {value!r}: {problem}")


@dataclass(frozen=True)
class _Own:
    """A field as it is declared: its type taken apart.

    Attributes:
        numeric: float, int, bool or str among its types.
        words: what its Literal lists, or its choices.
        group: a dataclass of hyper-parameters among its types.
        optional: it may be None.
        words_first: the type names its words before numbers, and so do messages.
    """

    name: str
    default: Any
    said: Setting
    numeric: type | None
    words: tuple[str, ...]
    group: Any
    optional: bool
    words_first: bool

    def problem(self, value: object) -> str:
        """Why it may not have this value; empty: it may."""
        if self.said.schema is not None or (self.optional and value is None):
            return ""
        if self.group is not None:
            keys = ", ".join(each.name for each in _settings(self.group) if each.name not in self.said.without)
            return "" if isinstance(value, self.group) else f"must be a mapping of {keys}"
        if isinstance(value, str) and value in self.words:
            return ""
        if self.numeric in (float, int) and self._is_number(value):
            return ""
        if self.numeric is bool and isinstance(value, bool):
            return ""
        if self.numeric is str and not self.words and isinstance(value, str):
            return ""
        return self._must()

    def _is_number(self, value: object) -> bool:
        kind = int if self.numeric is int else Real
        if isinstance(value, bool) or not isinstance(value, kind) or not math.isfinite(value):
            return False
        return all(within(float(value), limit) for limit, within, *_ in self._limits())

    def _limits(self) -> list[tuple[float, Callable[[float, float], bool], str, str]]:
        """Those that it has: the number, what holds within it, and how tables and schemas write it."""
        limits = ((getattr(self.said, name), *written) for name, written in _LIMITS.items())
        return [limit for limit in limits if limit[0] is not None]

    def _must(self) -> str:
        words = ", ".join(map(repr, self.words))
        if self.numeric not in (float, int):
            return f"one of {words}" if words else f"must be a {_KINDS[self.numeric or str]}"
        sentence = f"must {self._be('an integer' if self.numeric is int else 'a number')}"
        return f"{sentence}, or {words}" if words else sentence

    def _be(self, kind: str) -> str:
        above, least, below, most = self.said.above, self.said.least, self.said.below, self.said.most
        if above is not None and below is not None:
            return f"lie between {above:g} and {below:g}"
        if least is not None and below is not None:
            return f"be in [{least:g}, {below:g})"
        if above is not None and most is not None:
            return f"be above {above:g} and at most {most:g}"
        if above is not None:
            return f"be {kind} above {above:g}"
        return f"be {kind}" if least is None else f"be {kind} of at least {least:g}"

    def told(self) -> str:
        """For a table."""
        given = self.default not in (None, dataclasses.MISSING)
        default = [str(_written(self.default)).removesuffix(".0")] if given else []
        if isinstance(self.default, bool):
            default = ["true" if self.default else "false"]
        limits = [f"{sign}{limit:g}" for limit, _, sign, _ in self._limits()]
        others = [word for word in self.words if word != self.default]
        may = ", ".join([*others, *([",".join(limits)] if limits else [])])
        return " ".join([f"`{self.name}`", *default, *([f"({may})"] if may else [])])

    def schema(self) -> dict:
        """What a config's value is held against."""
        rules: dict = {"description": self.said.about} if self.said.about else {}
        if self.said.search:
            rules["x-search"] = dict(self.said.search)
        if self.said.filled and self.default not in (None, dataclasses.MISSING):
            rules["default"] = _written(self.default)
        if self.said.schema is not None:
            return rules | dict(self.said.schema)
        if self.group is not None:
            return rules | _object(self.group, self.said.without)
        kinds: list[dict] = []
        if self.numeric and not (self.numeric is str and self.words):
            limits = {keyword: limit for limit, _, _, keyword in self._limits()}
            kinds.append({"type": _KINDS[self.numeric], **limits})
        if self.words:
            listed = {"const": self.words[0]} if kinds and len(self.words) == 1 else {"enum": list(self.words)}
            kinds.insert(0 if self.words_first else len(kinds), listed)
        return rules | (kinds[0] if len(kinds) == 1 else {"anyOf": kinds})


def _written(default: Any) -> Any:
    """As configs have it: 0 and 10, but 1.0. Hashes of cells tell these apart, so that they stay as they were."""
    return int(default) if isinstance(default, float) and default.is_integer() and default != 1 else default


@functools.cache
def _settings(kind: Any) -> tuple[_Own, ...]:
    hints = typing.get_type_hints(kind)
    return tuple(_own(each, hints[each.name]) for each in fields(kind) if _KEY in each.metadata)


def _own(each: dataclasses.Field, hint: Any) -> _Own:
    is_union = isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union
    parts = typing.get_args(hint) if is_union else (hint,)
    words = tuple(word for part in parts if typing.get_origin(part) is typing.Literal for word in typing.get_args(part))
    declared: Setting = each.metadata[_KEY]
    return _Own(
        each.name,
        each.default,
        declared,
        next((part for part in parts if part in _KINDS), None),
        tuple(declared.choices) or words,
        next((part for part in parts if is_dataclass(part)), None),
        type(None) in parts,
        typing.get_origin(parts[0]) is typing.Literal,
    )


def _object(kind: type, without: Sequence[str] = ()) -> dict:
    kept = [each for each in _settings(kind) if each.name not in without]
    required = [each.name for each in kept if each.default is dataclasses.MISSING]
    rules = {"type": "object", "additionalProperties": False} | ({"required": required} if required else {})
    return rules | {"properties": {each.name: each.schema() for each in kept}}


def told(kind: type) -> list[str]:
    """Each hyper-parameter with its default and allowed values, as text for a table.

    >>> @dataclass(frozen=True)
    ... class Parameters(Hyperparameters):
    ...     ridge: float | typing.Literal["known-noise"] = setting("known-noise", above=0)
    ...     epochs: int = setting(least=1, named=True)
    >>> told(Parameters)
    ['`ridge` known-noise (>0)', '`epochs` (≥1)']
    """
    return [each.told() for each in _settings(kind)]


def schema_of(name: str, kind: type, entries: Mapping) -> dict:
    """The schema of a method's entries.

    Args:
        name: the method's.
        kind: its `Parameters`, each field a `setting`.
        entries: what rules ask of such entries: "x-reads", "x-curve" and others (docs/add-a-method.md), and further
            keywords of JSON schema.
    """
    rules = _object(kind)
    return {"title": name} | rules | dict(entries) | {"properties": {"method": {"const": name}} | rules["properties"]}
