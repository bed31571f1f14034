"""Data sets given as lists of image files with labels, subjects and groups."""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.data.images import decode_all, image_options
from dpstudy.data.reader import Rows
from dpstudy.data.records import Records, RecordTable
from dpstudy.data.source import location

# of these digits only: others (a superscript two) are digits to Python too, and are no numbers
_AGE = re.compile(r"(?=\.?[0-9])0*([0-9]{0,6})(?:\.[0-9]*)?[Yy]*")
_BANDS = {40: "under 40", 60: "40-59", 80: "60-79", 121: "80 and over"}  # of ages in years below each number


@dataclass(frozen=True)
class Listing(RecordTable):
    """The images of one pool.

    Attributes:
        ids: (n,) strings: their paths below `folder`.
        folder: what they are relative to.
        labels: (n,) int32 class indices, or (n, m) int8 of 0 and 1.
        table: the file that lists them, for messages; "" where folders do.
        subjects: (n,) strings, or None.
        groups: name -> (n,) strings.
    """

    ids: np.ndarray
    folder: Path
    labels: np.ndarray
    table: str = ""
    subjects: np.ndarray | None = None
    groups: dict[str, np.ndarray] = field(default_factory=dict)


class ListedImages:
    """A reader of listed images, with one listing per pool.

    Args:
        options: `size`, `channels` and `resize` (stretch, or crop: the middle, with its aspect kept).
        resize: what `resize` is where absent.
    """

    def __init__(self, listings: dict[str, Listing], classes: list[str], options: dict, resize: str = "stretch"):
        self.classes, self.pools = classes, tuple(listings)
        self.multi_label = next(iter(listings.values())).labels.ndim == 2
        self._listings = listings
        self._decoding = image_options(options, resize)
        for pool, listing in listings.items():
            if not len(listing.ids):
                raise StudyError(f"{listing.table or listing.folder}: no image in the pool {pool!r}")

    def rows(self, pool: str) -> Rows:
        """See `Reader`."""
        return Rows(self._listings[pool].ids, self._listings[pool].subjects)

    def read(self, pool: str, indices: np.ndarray) -> Records:
        """See `Reader`."""
        listing = self._listings[pool].take(indices)
        paths = [listing.folder / name for name in listing.ids]
        where = [f"{listing.table}: row {index}" if listing.table else f"row {index} of {pool}" for index in indices]
        images = decode_all(paths, where, **self._decoding)
        return Records(listing.ids, images, listing.labels, listing.subjects, listing.groups)


def sized_location(reader: str, options: dict, data_root: Path) -> Path:
    """The folder in the option `location`, of a data set whose images vary in size and must be brought to one.

    Raises:
        StudyError: as of `location`, or the option `size` is absent.
    """
    folder = location(options, data_root)
    if options.get("size") is None:
        raise StudyError(f"reader {reader!r}: its images have many sizes; give `size` ([height, width])")
    return folder


def age_bands(ages: Iterable[str]) -> np.ndarray:
    """(n,) names of age bands from ages in years ("57" or "057Y"): under 40, 40-59, 60-79, 80 and over, unknown."""
    bands = []
    for text in ages:
        match = _AGE.fullmatch(str(text).strip())
        years = int(match[1] or 0) if match else math.inf
        bands.append(next((name for end, name in _BANDS.items() if years < end), "unknown"))
    return np.array(bands, dtype=object)
