"""Readers of data set formats: the config's `reader` names a module here."""

from pathlib import Path

from dpstudy.core.by_name import opener
from dpstudy.core.errors import StudyError
from dpstudy.data.extra import enlarge
from dpstudy.data.own_names import OwnNames
from dpstudy.data.reader import Reader

_OFFERED = ("classes", "multi_label", "pools", "rows", "read")


def open_own(options: dict, data_root: Path) -> Reader:
    """As `open_reader`, without the records of its `extra` source."""
    return open_reader(options["reader"], {key: options[key] for key in options if key != "extra"}, data_root)


def open_reader(name: str | None, options: dict, data_root: Path) -> Reader:
    """The opened data set of a config entry, with the records of its `extra` source where it has one.

    Args:
        options: the data set's entry in the config; `own_names` (own.with_own_names) has records named as the user's
            own are.
        data_root: the folder that `location` is relative to.

    Raises:
        StudyError: there is no such reader, the data are missing or damaged, `extra` does not fit them, or what the
            reader's module opens is no reader.
    """
    reader = opener(__name__, "reader", name).open(options, Path(data_root))
    if lacking := [part for part in _OFFERED if not hasattr(reader, part)]:
        raise StudyError(
            f"reader {name!r}: what its `open` gives back, {type(reader).__name__}, has no {' and no '.join(lacking)}; "
            "data/reader.py says what a reader offers"
        )
    if options.get("own_names"):
        reader = OwnNames(reader, options.get("numbered", False))
    if "extra" not in options:
        return reader
    extra = {"classes": reader.classes} | options["extra"]
    return enlarge(reader, open_reader(extra["reader"], extra, data_root), extra.get("records"))
