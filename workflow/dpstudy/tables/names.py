"""The study's names in tables and figures, and labels that flag unproved guarantees."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from dpstudy.core.errors import StudyError


def private_tests(datasets: Iterable[str], axes: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Those of these data sets whose test split holds private records, by `axes["private_tests"]`."""
    return tuple(name for name in dict.fromkeys(datasets) if name in axes.get("private_tests", ()))


def marked(label: str, entry: str, axes: Mapping[str, Sequence[str]]) -> str:
    """The label of an entry, with a note where its guarantee is claimed only or exceeds the target.

    Args:
        axes: the study's names; `claimed` (none where absent): the entries whose guarantee nobody proved; `beyond`:
            those that certify more than their target.
    """
    if entry in axes.get("claimed", ()):
        return f"{label} (ε claimed)"
    return f"{label} (certifies more than ε)" if entry in axes.get("beyond", ()) else label


def line_label(row: Mapping) -> str:
    """The label of a method entry on a feature set, or its names if it has none.

    In figures `labels.fill_labels` gives it the label of tables.

    >>> line_label({"entry": "ls", "features": "pixels"}), line_label({"entry": "ls", "label": "Least squares"})
    ('ls, pixels', 'Least squares')
    """
    return row["label"] if "label" in row else f"{row['entry']}, {row['features']}"


def check_names(where: str, what: str, names: Iterable[str], known: Collection[str]) -> None:
    """Refuse a name that the study does not have.

    Raises:
        StudyError: naming it, and the names that are known.
    """
    for name in names:
        if name not in known:
            raise StudyError(f"{where}: {what} {name!r} is not in the study; there are {', '.join(known)}")


def datasets_of(name: str, spec: Mapping, axes: Mapping[str, list[str]], kind: str = "table") -> list[str]:
    """The data sets of a table or figure (`kind`): its `datasets`, its `dataset`, or all.

    Raises:
        StudyError: one that the study does not have.
    """
    datasets = spec.get("datasets", [spec["dataset"]] if "dataset" in spec else axes["datasets"])
    check_names(f"{kind} {name}", "data set", datasets, axes["datasets"])
    return datasets


def enumerated(names: Sequence[str]) -> str:
    """Names as text: "a, b and c".

    >>> enumerated(["pixels", "scatternet", "vit"])
    'pixels, scatternet and vit'
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
