"""Shorthand in a config: entries swept over settings, and names with `*` that match several."""

import copy
import fnmatch
import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from dpstudy.core.errors import StudyError
from dpstudy.core.suggest import suggestion

_SECTIONS = {"datasets": "data set", "features": "feature set", "methods": "method entry"}
_SWEPT = ("features", "methods")
_AXES = {  # key of one name, or of a list of names -> section
    "dataset": "datasets",
    "datasets": "datasets",
    "features": "features",
    "entry": "methods",
    "entries": "methods",
}
_MOST = 1000  # entries of one sweep
_FIELD = re.compile(r"\{(\w+)(?::([^{}]*))?\}")
Settings = dict[str, dict[str, dict[str, Any]]]  # section -> name -> what its sweep filled in


def expand(config: Any) -> Any:
    """The config with its sweeps and globs expanded.

    An entry of `methods` or `features` with a key `sweep` stands for one entry for each combination of the sweep's
    values. Its name has a field `{axis}` for each axis:

        batch-{batch_size}: {method: network_dpsgd, sweep: {batch_size: [256, 512]}, ...}
        copies-{K}: {<<: *base, sweep: {K: {"0": {}, "4": {augmentation: {multiplicity: 4}}}}}

    A list sets the key that the axis is called by; a mapping says for each name what settings it stands for. In names a
    number's point is written "p", as in rate-0p5.

    In `cells`, `overrides`, `audit`, `tables` and `figures` a data set, feature set or method entry with a `*`, as in
    `batch-*`, stands for all that fit, in the config's order: within a list of names, or in a mapping within a list,
    which is repeated for each. Fields in its `label` take the values of the sweep, formatted as Python formats: "B =
    {batch_size:,}".

    Of a plain table `published` says what the published numbers of its rows have in common.

    Raises:
        StudyError: a sweep that is none, names that it gives twice, or a glob that fits nothing.
    """
    if not isinstance(config, dict):
        return config
    config, swept = dict(config), {}
    for section in _SWEPT:
        if isinstance(config.get(section), dict):
            config[section], swept[section] = _swept(section, config[section])
    names = {section: list(config[section]) for section in _SECTIONS if isinstance(config.get(section), dict)}
    reader = _Globs(names, swept)
    for part in ("cells", "overrides", "audit", "tables", "figures"):
        if part in config:
            config[part] = reader.read(config[part], part)
    if isinstance(config.get("tables"), dict):
        config["tables"] = {name: _with_published(table) for name, table in config["tables"].items()}
    return config


def _with_published(table: Any) -> Any:
    """A plain table with what it says of its rows' published numbers in those rows that have one."""
    if not isinstance(table, dict) or table.get("style", "plain") != "plain":
        return table
    common, rows = table.get("published"), table.get("rows")
    if not isinstance(common, dict) or not isinstance(rows, list):
        return table
    merged = [
        row | {"published": common | row["published"]}
        if isinstance(row, dict) and isinstance(row.get("published"), dict)
        else row
        for row in rows
    ]
    return {key: value for key, value in table.items() if key != "published"} | {"rows": merged}


def _swept(section: str, entries: dict) -> tuple[dict, dict[str, dict[str, Any]]]:
    """The entries of a section with sweeps written out, and what each of those was filled in with."""
    written_out: dict = {}
    values: dict[str, dict[str, Any]] = {}
    for name, entry in entries.items():
        place = f"{section}.{name}"
        sweeps = isinstance(entry, dict) and "sweep" in entry
        for one, settings, filled in _combinations(place, name, entry) if sweeps else [(name, entry, None)]:
            if one in written_out:
                raise StudyError(
                    f"{place}: gives the name {one!r} twice; a field of each axis in the name tells them apart"
                )
            written_out[one] = settings
            if filled is not None:
                values[one] = filled
    return written_out, values


def _combinations(place: str, name: str, entry: dict) -> Iterator[tuple[str, dict, dict[str, Any]]]:
    rest = {key: value for key, value in entry.items() if key != "sweep"}
    axes = entry["sweep"]
    if not isinstance(axes, dict) or not axes:
        raise StudyError(f"{place}.sweep: must be a mapping of axes, such as {{batch_size: [256, 512]}}")
    if {field for field, _ in _FIELD.findall(name)} != set(axes):
        wanted = ", ".join(f"{{{axis}}}" for axis in axes)
        raise StudyError(f"{place}: the name must have a field for each axis of its sweep, and no other: {wanted}")
    columns = [_points(f"{place}.sweep.{axis}", axis, values) for axis, values in axes.items()]
    if math.prod(map(len, columns)) > _MOST:
        raise StudyError(f"{place}.sweep: stands for more than {_MOST} entries")
    for points in itertools.product(*columns):
        filled, settings, called = {}, copy.deepcopy(rest), name
        for axis, (value, of_point) in zip(axes, points, strict=True):
            filled[axis] = value
            settings |= copy.deepcopy(of_point)
            called = called.replace(f"{{{axis}}}", str(value).replace(".", "p"))
        yield called, settings, filled


def _points(place: str, axis: str, values: Any) -> list[tuple[Any, dict]]:
    """(what stands in names, settings) of each value of an axis."""
    if isinstance(values, list) and values and all(isinstance(one, str | int | float) for one in values):
        return [(value, {axis: value}) for value in values]
    if isinstance(values, dict) and values and all(isinstance(one, dict) for one in values.values()):
        return list(values.items())
    raise StudyError(f"{place}: must be a list of values of the key {axis!r}, or a mapping of names to settings")


class _Globs:
    """Writes out names with a `*`.

    Args:
        names: section -> its names.
        swept: what sweeps filled in.
    """

    def __init__(self, names: Mapping[str, list[str]], swept: Settings):
        self._names, self._swept = names, swept

    def read(self, value: Any, place: str) -> Any:
        """A part of the config with all its globs written out."""
        if isinstance(value, dict):
            return {key: self._of_key(key, item, f"{place}.{key}") for key, item in value.items()}
        if isinstance(value, list):
            return [one for number, item in enumerate(value) for one in self._items(item, f"{place}[{number}]")]
        return value

    def _of_key(self, key: str, value: Any, place: str) -> Any:
        if key in _AXES and isinstance(value, list):
            fitting = (self._fitting(key, name, place) if _is_glob(name) else [name] for name in value)
            return list(itertools.chain.from_iterable(fitting))
        if key == "match" and isinstance(value, dict):  # of an override: lists of names, or one name
            value = {axis: [names] if _is_glob(names) else names for axis, names in value.items()}
        elif isinstance(value, dict) and self._axes(value):  # of a role: one place, or a list of them
            items = self._items(value, place)
            return items if len(items) != 1 else items[0]
        return self.read(value, place)

    def _axes(self, item: dict) -> list[str]:
        return [key for key in item if key in _AXES and _is_glob(item[key])]

    def _items(self, item: Any, place: str) -> list:
        """What an item of a list stands for."""
        axes = self._axes(item) if isinstance(item, dict) else []
        if not axes:
            return [self.read(item, place)]
        items = []
        for names in itertools.product(*(self._fitting(axis, item[axis], f"{place}.{axis}") for axis in axes)):
            one = copy.deepcopy(item) | dict(zip(axes, names, strict=True))
            if isinstance(one.get("label"), str):
                one["label"] = _FIELD.sub(self._value(one, f"{place}.label"), one["label"])
            items.append(self.read(one, place))
        return items

    def _value(self, item: dict, place: str) -> Callable[[re.Match], str]:
        values: dict[str, Any] = {}
        for axis, section in _AXES.items():
            if isinstance(item.get(axis), str):
                values |= self._swept.get(section, {}).get(item[axis], {})

        def value(field: re.Match) -> str:
            if field[1] not in values:
                known = ", ".join(f"{{{name}}}" for name in values) or "no field"
                raise StudyError(f"{place}: {field[0]} is no axis of a sweep here; there is {known}")
            try:
                return format(values[field[1]], field[2] or "")
            except ValueError as error:
                raise StudyError(
                    f"{place}: {field[0]}: {error}; formats are Python's, such as {{x:,}} or {{x:g}}"
                ) from None

        return value

    def _fitting(self, key: str, glob: str, place: str) -> list[str]:
        section = _AXES[key]
        fitting = [name for name in self._names.get(section, []) if fnmatch.fnmatchcase(str(name), glob)]
        if not fitting:
            close = suggestion(glob, self._names.get(section, []))
            raise StudyError(f"{place}: no {_SECTIONS[section]} fits {glob!r}{close}")
        return fitting


def _is_glob(name: Any) -> bool:
    return isinstance(name, str) and any(mark in name for mark in "*?[")  # no name has one of these
