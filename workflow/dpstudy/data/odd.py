"""Warnings about peculiarities of a user's own data set that may be mistakes; nothing is refused."""

from collections.abc import Iterator

import numpy as np

from dpstudy.data.own import own_data
from dpstudy.data.reader import Reader
from dpstudy.data.records import Records, concatenate

_MANY_GROUPS = 30  # more are no groups that a table can compare
_MUCH_WHITE, _ALL = 0.5, 0.9  # of an image


def odd(options: dict, reader: Reader) -> Iterator[str]:
    """A sentence for each peculiarity of a data set.

    Args:
        options: the data set's entry in the config.
        reader: of it; nothing is looked at where it has no `known`.
    """
    if not hasattr(reader, "known"):
        return
    records = concatenate([reader.known(pool) for pool in reader.pools])
    yield from _labels(records, reader.classes)
    yield from _persons(options, records)
    yield from _groups(records)
    if own_data(options["reader"]) and options.get("test_split") == "public" and "test" not in reader.pools:
        yield (
            "test_split: public, but the test records are cut at random from the private ones; scores of them would be "
            "published as if they cost nothing"
        )


def odd_look(options: dict, image: np.ndarray) -> Iterator[str]:
    """A sentence for each peculiarity of an (H, W, C) image, as it will be learned from."""
    if isinstance(options.get("window"), list):
        white, black = (float(np.mean(image == level)) for level in (255, 0))
        if white > _MUCH_WHITE or white + black > _ALL:
            yield (
                f"through window {options['window']} {100 * white:.0f} % of the first image's pixels are white and "
                f"{100 * black:.0f} % black, all alike to what is learned; is it the window of such images?"
            )
    if image.shape[2] == 3 and (image == image[:, :, :1]).all():
        yield "channels: 3, and the first image is grey; 1 takes a third of the time"


def _labels(records: Records, classes: list[str]) -> Iterator[str]:
    if records.multi_label:
        borne = records.labels.sum(0)
        never, always = borne == 0, borne == len(records)
    else:
        never, always = np.bincount(records.labels, minlength=len(classes)) == 0, np.zeros(len(classes), bool)
    for which, words in ((never, "no record bears"), (always, "every record bears")):
        if which.any():
            named = ", ".join(repr(name) for name in np.array(classes, dtype=object)[which])
            yield f"{words} {named}, so that nothing is to be learned of it; is the spelling, or the column, right?"


def _persons(options: dict, records: Records) -> Iterator[str]:
    if records.subjects is not None and options.get("unit") == "subject" and options.get("per_subject", 1) > 1:
        most = int(np.unique(records.subjects.astype(str), return_counts=True)[1].max())
        if most == 1:
            yield "each image is of another person; is that what `subject_column` says?"
        elif most < options["per_subject"] and options.get("contributions") != "average":
            yield (
                f"nobody has more than {most} images, and per_subject is {options['per_subject']}: noise is drawn for "
                f"as many; give {most}"
            )


def _groups(records: Records) -> Iterator[str]:
    for name, values in records.groups.items():
        distinct = sorted(set(values))
        if len(distinct) == 1:
            yield f"all records are of one group {name!r} ({distinct[0]!r}); is the column right?"
        if len(distinct) > _MANY_GROUPS:
            yield f"the groups {name!r} are {len(distinct)}; give bands, or another column"
