"""Search spaces of hyper-parameters: name -> {low, high, log, integer} or {choices}, as in the config."""

import itertools
import math
from collections.abc import Mapping

from dpstudy.core.errors import StudyError
from dpstudy.privacy.secure_sampling import AnyGenerator

DEFAULT = "default"
Value = str | int | float | bool


def check_space(space: Mapping[str, Mapping], place: str) -> None:
    """Refuse ranges without values and choices that cannot be distinguished.

    Args:
        space: as the config's schema allows it.
        place: where it stands in the config.

    Raises:
        StudyError: names the hyper-parameter, what is wrong, and what would be right.
    """
    for name, axis in space.items():
        where = f"{place}.{name}"
        if ("choices" in axis) == ("low" in axis or "high" in axis) or ("low" in axis) != ("high" in axis):
            raise StudyError(f"{where}: give either 'low' and 'high', or 'choices'")
        if "choices" in axis:
            if len(set(map(str, axis["choices"]))) < len(axis["choices"]):
                raise StudyError(f"{where}.choices: {axis['choices']!r} names something twice")
            continue
        low, high = axis["low"], axis["high"]
        if not low < high:
            raise StudyError(f"{where}: low {low!r} must be less than high {high!r}")
        if axis["log"] and not low > 0:
            raise StudyError(f"{where}.low: {low!r} must be more than 0, or `log: false`")
        if axis["integer"] and not (float(low).is_integer() and float(high).is_integer()):
            raise StudyError(f"{where}: low {low!r} and high {high!r} must be integers, as `integer: true` has it")


def default_space(entry: dict, rules: Mapping[str, Mapping], place: str) -> dict:
    """An entry with `tuning.space: default` replaced by the search ranges of its method's schema (`x-search`).

    What the entry gives itself is not searched, and what a range says of other options (`where`) must hold.

    Raises:
        StudyError: nothing is left to search.
    """
    tuning = entry.get("tuning")
    if not isinstance(tuning, dict) or tuning.get("space") != DEFAULT:
        return entry
    space = {}
    for name, rule in rules.items():
        asked = rule.get("x-search")
        if (
            asked
            and name not in entry
            and all(entry.get(key) == value for key, value in asked.get("where", {}).items())
        ):
            space[name] = {"low": asked["low"], "high": asked["high"], "log": True, "integer": False}
    if not space:
        raise StudyError(
            f"{place}.tuning.space: the entry gives all that its method has a usual range for; name a space"
        )
    return entry | {"tuning": tuning | {"space": space}}


def bounds(axis: Mapping) -> tuple[float, float] | tuple[int, int]:
    """(low, high) of a range, as integers where it holds integers only."""
    kind = int if axis["integer"] else float
    return kind(axis["low"]), kind(axis["high"])


def corners(space: Mapping[str, Mapping]) -> list[dict[str, Value]]:
    """Settings that between them cover every bound and every choice, for validation against a method's schema."""
    ends = {name: values_of({"tuning": {"space": space}}, name) for name in space}
    longest = max(map(len, ends.values()))
    return [{name: values[min(index, len(values) - 1)] for name, values in ends.items()} for index in range(longest)]


def values_of(options: Mapping, name: str, default: Value | None = None) -> list:
    """The values that a hyper-parameter of a cell may have: its own one, the choices or the ends of its range.

    Args:
        options: a cell's, in which what is searched has no value.
        default: where it is neither given nor searched.
    """
    axis = options.get("tuning", {}).get("space", {}).get(name)
    if axis is None:
        return [options.get(name, default)]
    return list(axis["choices"]) if "choices" in axis else list(bounds(axis))


def combinations(space: Mapping[str, Mapping]) -> list[dict[str, Value]]:
    """The corners, and every combination of choices that are no numbers: the kinds of setting that a draw may give."""
    ends = corners(space)
    kinds = {name: axis for name, axis in space.items() if _of_kinds(axis)}
    covered = [{name: end[name] for name in kinds} for end in ends]
    return ends + [ends[0] | kind for kind in grid(kinds) if kind not in covered]


def _of_kinds(axis: Mapping) -> bool:
    return any(isinstance(choice, str | bool) for choice in axis.get("choices", ()))


def grid(space: Mapping[str, Mapping]) -> list[dict[str, Value]]:
    """Every combination of the choices; the last hyper-parameter changes fastest."""
    values = itertools.product(*(axis["choices"] for axis in space.values()))
    return [dict(zip(space, combination, strict=True)) for combination in values]


def draw(space: Mapping[str, Mapping], generator: AnyGenerator) -> dict[str, Value]:
    """A random setting: uniform over choices and ranges, or log-uniform where the range says `log`."""
    return {name: _draw(axis, generator) for name, axis in space.items()}


def _draw(axis: Mapping, generator: AnyGenerator) -> Value:
    if "choices" in axis:
        return axis["choices"][int(generator.integers(len(axis["choices"])))]
    low, high = bounds(axis)
    if axis["integer"] and not axis["log"]:
        return int(generator.integers(int(low), int(high), endpoint=True))
    value = math.exp(generator.uniform(math.log(low), math.log(high))) if axis["log"] else generator.uniform(low, high)
    value = min(max(value, low), high)  # rounding may leave the range
    return round(value) if axis["integer"] else float(value)


def check_grid(space: Mapping[str, Mapping], place: str) -> None:
    """Refuse a grid search over a range.

    Raises:
        StudyError: names the hyper-parameter.
    """
    for name, axis in space.items():
        if "choices" not in axis:
            raise StudyError(f"{place}.{name}: `sampler: grid` needs 'choices', not a range")


def as_cell(axis: Mapping, value: Value) -> Value:
    """A value as stored in a table of trials: choices become text, since their types may differ."""
    return str(value) if "choices" in axis else value


def from_cell(axis: Mapping, cell: Value) -> Value:
    """The inverse of `as_cell`.

    Raises:
        KeyError: it is none of the choices.
    """
    if "choices" not in axis:
        return cell
    choices: dict[Value, Value] = {str(choice): choice for choice in axis["choices"]}
    return choices[cell]
