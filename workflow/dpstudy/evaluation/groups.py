"""Subgroups of an evaluation, with a minimum size."""

from collections.abc import Mapping

import numpy as np

OTHERS = "others"
UNKNOWN = "unknown"  # an empty cell of the table


def members(
    columns: Mapping[str, np.ndarray], smallest: int, small: str = "merge", subjects: np.ndarray | None = None
) -> dict[str, np.ndarray]:
    """Group name (such as "sex=F") -> (n,) whether each record belongs, in the order of columns and names.

    Args:
        columns: name -> (n,) strings.
        smallest: the fewest records that a group may have; persons, where they are known.
        small: what becomes of smaller ones: "merge" makes them one group of the column, "others", which is withheld
            if it is too small still; "withhold" leaves them out.
        subjects: (n,) whose each record is.
    """

    def size(mask: np.ndarray) -> int:
        return int(mask.sum()) if subjects is None else len(set(subjects[mask].tolist()))

    masks = {}
    for column, values in columns.items():
        values = np.array([str(value) or UNKNOWN for value in values], dtype=object)
        large = [str(name) for name in np.unique(values.astype(str)) if size(values == name) >= smallest]
        for name in large:
            masks[f"{column}={name}"] = values == name
        rest = ~np.isin(values.astype(str), large)
        if small == "merge" and size(rest) >= smallest:
            masks[f"{column}={OTHERS}"] = rest
    return masks


def gap(values: Mapping[str, float]) -> tuple[float, str, str] | None:
    """The difference between the best and the worst group, with their names; None for fewer than two groups.

    >>> gap({"F": 80.0, "M": 84.5})
    (4.5, 'M', 'F')
    """
    if len(values) < 2:
        return None
    best, worst = max(values, key=values.__getitem__), min(values, key=values.__getitem__)
    return values[best] - values[worst], best, worst
