"""A comparison as plain text for a terminal."""

from collections.abc import Iterable, Iterator

from dpstudy.comparison.change import GROUP, MADE_BY, METRIC, ONLY, Change, is_number
from dpstudy.comparison.compare import Comparison, Found
from dpstudy.privacy.printed import lower_bound, upper_bound
from dpstudy.tables.numbers import significant

_NAMED = 8  # changes of one file, and values of one kind of origin, that are listed one by one
_WIDTH = 60  # characters of a value that are shown
_HEAD = ("", "A", "B", "B - A", "two standard errors")


def as_text(comparison: Comparison) -> str:
    """The comparison as text: counts, then differences in what made the cells, in each cell, and in each table."""
    cells, sheets = comparison.cells, comparison.sheets
    changed = {
        name: [change for change in changes if change.part != MADE_BY] for name, changes in cells.changes.items()
    }
    changed = {name: changes for name, changes in changed.items() if changes}
    lines = [f"A: {comparison.a}", f"B: {comparison.b}", "", _counts("cells", cells)]
    if alone := len(cells.changes) - len(changed):
        lines.append(f"of those that differ, {alone:,} do only in what made them")
    lines += _means(cells)
    lines += _only(cells)
    made = [change for changes in cells.changes.values() for change in changes if change.part == MADE_BY]
    if made:
        lines += ["", "what made them", *_aligned([("", "A", "B", "cells"), *_origins(made)])]
    for name, changes in changed.items():
        lines += ["", name, *_cell(changes)]
    lines += ["", _counts("CSV files of tables and figures", sheets), *_only(sheets)]
    for name, changes in sheets.changes.items():
        lines += ["", name, *_sheet(name, changes)]
    return "\n".join(lines) + "\n"


def _counts(kind: str, found: Found) -> str:
    alike = found.both - len(found.changes)
    return (
        f"{kind}: {alike:,} alike, {len(found.changes):,} differ, {len(found.only_a):,} only in A, "
        f"{len(found.only_b):,} only in B"
    )


def _means(cells: Found) -> Iterator[str]:
    for part, where in ((METRIC, "on the whole test split"), (GROUP, "of groups")):
        means = [change for changes in cells.changes.values() for change in changes if change.part == part]
        if means:
            yield f"means over seeds {where}: {len(means):,} differ, {_beyond(means)}"


def _beyond(means: list[Change]) -> str:
    unknown = sum(change.beyond is None for change in means)
    text = f"{sum(change.beyond is True for change in means):,} by more than two standard errors"
    return f"{text} ({unknown:,} of a single seed or of one tree: not known)" if unknown else text


def _only(found: Found) -> Iterator[str]:
    for tree, names in (("A", found.only_a), ("B", found.only_b)):
        if names:
            yield from ("", f"only in {tree}", *(f"  {name}" for name in names))


def _origins(made: list[Change]) -> Iterator[tuple[str, ...]]:
    """A line for each change that cells share; many different ones of a kind, such as config hashes, are counted."""
    by_what: dict[str, dict[tuple, int]] = {}
    for change in made:
        pairs = by_what.setdefault(change.what, {})
        pairs[change.a, change.b] = pairs.get((change.a, change.b), 0) + 1
    for what, pairs in by_what.items():
        if len(pairs) > _NAMED:
            yield what, "various", "various", f"{sum(pairs.values()):,}"
        else:
            yield from ((what, _text(a), _text(b), f"{count:,}") for (a, b), count in pairs.items())


def _cell(found: list[Change]) -> list[str]:
    groups = [change for change in found if change.part == GROUP]
    lines = _aligned([_HEAD, *map(_line, (change for change in found if change.part != GROUP))])
    return [*lines, f"  means of groups: {len(groups):,} differ, {_beyond(groups)}"] if groups else lines


def _sheet(name: str, found: list[Change]) -> list[str]:
    lines = [_line(change, change.place.removeprefix(name).strip()) for change in found[:_NAMED]]
    more = [f"  and {len(found) - _NAMED:,} more"] if len(found) > _NAMED else []
    return [*_aligned([_HEAD[:-1], *(line[:-1] for line in lines)]), *more]


def _line(change: Change, row: str = "") -> tuple[str, ...]:
    if change.part == ONLY:
        return f"{row} {change.what}".strip(), _text(change.a), _text(change.b), "", ""
    a, b = _text(change.a, change.what), _text(change.b, change.what)
    if a == b:  # they differ in later digits
        a, b = str(change.a), str(change.b)
    difference = "" if change.difference is None else f"{change.difference:+.4g}"
    return f"{row} {change.what}".strip(), a, b, difference, _error(change)


def _error(change: Change) -> str:
    if change.part != METRIC:
        return ""
    if change.error is None or change.beyond is None:
        return "not known"
    return f"{2 * change.error:.2g}, {'beyond' if change.beyond else 'within'}"


def _text(value: object, what: str = "") -> str:
    if value is None:
        return "-"
    text = _number(value, what) if is_number(value) else str(value).replace("\n", " ")
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 3]}..."


def _number(value: float, what: str) -> str:
    """A bound on epsilon, and delta, as such."""
    if "epsilon" not in what and not what.endswith("delta"):
        return significant(value, 6)
    return lower_bound(value, 6) if "lower" in what or "audited" in what else upper_bound(value, 6)


def _aligned(rows: Iterable[tuple[str, ...]]) -> list[str]:
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    padded = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return [f"  {line}".rstrip() for line in padded]
