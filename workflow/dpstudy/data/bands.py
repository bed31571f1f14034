"""Subgroups in a config: their names, and numeric columns cut into bands (age, say). Light to import.

An entry of a config's `group_columns` is a column's name, or {column, bands, name}: [40, 60] makes the groups "below
40", "40 to 59" and "60 and above". A band's lower bound belongs to it.
"""

import math

from dpstudy.core.errors import StudyError

UNKNOWN = "unknown"  # an empty field

Entry = str | dict


def group_name(entry: Entry) -> str:
    """The name of one entry's grouping: its `name`, else its column."""
    return entry if isinstance(entry, str) else str(entry.get("name", entry["column"]))


def group_names(options: dict) -> list[str] | None:
    """The names of a data set's groupings by its config entry; None where only its files can tell."""
    if options["reader"] == "labels":
        return None
    by_itself = ["sex", "age", "view"] if options["reader"] in ("nih", "chexpert") else []
    return [group_name(entry) for entry in options.get("group_columns", [])] or by_itself


def check_entries(entries: list[Entry], place: str) -> None:
    """Check that band bounds ascend and that no two entries share a name; `place` is where they stand in the config.

    Raises:
        StudyError: naming the entry.
    """
    seen: dict[str, int] = {}
    for number, entry in enumerate(entries):
        first = seen.setdefault(group_name(entry), number)
        if first != number:
            raise StudyError(
                f"{place}[{number}]: the groups are called {group_name(entry)!r}, as those of {place}[{first}] are; "
                "give one of the two another `name`"
            )
        bounds = [] if isinstance(entry, str) else entry["bands"]
        rising = all(low < high for low, high in zip(bounds, bounds[1:], strict=False))
        if not (rising and all(math.isfinite(bound) for bound in bounds)):
            raise StudyError(f"{place}[{number}].bands: {bounds} must be numbers, each larger than the one before")


def band_names(bounds: list[float]) -> list[str]:
    """The names of the len(bounds) + 1 bands, in order.

    Between whole numbers a band is named by the whole numbers in it ("40 to 59", which also holds 59.5), else by its
    bounds ("18.5 to below 25").

    >>> band_names([40, 60])
    ['below 40', '40 to 59', '60 and above']
    """
    whole = all(float(bound).is_integer() for bound in bounds)
    names = [f"below {bounds[0]:.12g}"]
    for low, high in zip(bounds, bounds[1:], strict=False):
        if not whole:
            names.append(f"{low:.12g} to below {high:.12g}")
        else:
            names.append(f"{low:.12g}" if high - low == 1 else f"{low:.12g} to {high - 1:.12g}")
    return [*names, f"{bounds[-1]:.12g} and above"]


def band_of(text: str, bounds: list[float]) -> str | None:
    """The name of the band that a field falls into: UNKNOWN if it is empty, None if it is not a finite number.

    Besides "57" and "57.5" it may be "057Y", an age in years as DICOM writes it.

    >>> band_of("057Y", [40, 60])
    '40 to 59'
    """
    if text == "":
        return UNKNOWN
    try:
        value = float(text[:-1] if text[-1] in "Yy" else text)
    except ValueError:
        return None
    return band_names(bounds)[sum(value >= bound for bound in bounds)] if math.isfinite(value) else None
