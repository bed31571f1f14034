"""Warnings about peculiarities of a user's own data set that may be mistakes; nothing is refused."""

import re
import unicodedata
from collections.abc import Iterator

import numpy as np

from dpstudy.core.subjects import name_of
from dpstudy.data.own import own_data
from dpstudy.data.reader import Reader
from dpstudy.data.records import Records, concatenate
from dpstudy.data.splits import Parts

_MANY_GROUPS = 30  # more are no groups that a table can compare
_MANY_IMAGES, _FAR_MORE = 20, 5  # of one person, and how many times as many as anybody else's
_ZEROS = re.compile("(?<![0-9])0+(?=[0-9])")  # leading ones
_MUCH_WHITE, _ALL = 0.5, 0.9  # of an image


def odd(options: dict, reader: Reader, tested: Parts) -> Iterator[str]:
    """A sentence for each peculiarity of a data set.

    Args:
        options: the data set's entry in the config.
        reader: of it; nothing is looked at where it has no `known`.
        tested: the rows of the test split.
    """
    if not hasattr(reader, "known"):
        return
    pools = {pool: reader.known(pool) for pool in reader.pools}
    records = concatenate(list(pools.values()))
    yield from _labels(records, reader.classes)
    if held_out := [pools[pool].take(indices) for pool, indices in tested if pool in pools and len(indices)]:
        yield from _tested(records, concatenate(held_out), reader.classes)
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


def _borne(records: Records, classes: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """(m,) which classes no record bears, and which all of them do."""
    counts = records.labels.sum(0) if records.multi_label else np.bincount(records.labels, minlength=len(classes))
    return counts == 0, counts == len(records)


def _named(classes: list[str], which: np.ndarray) -> str:
    return ", ".join(repr(name) for name in np.array(classes, dtype=object)[which])


def _labels(records: Records, classes: list[str]) -> Iterator[str]:
    never, always = _borne(records, classes)
    for which, words in ((never, "no record bears"), (always & records.multi_label, "every record bears")):
        if which.any():
            named = _named(classes, which)
            yield f"{words} {named}, so that nothing is to be learned of it; is the spelling, or the column, right?"


def _tested(records: Records, tested: Records, classes: list[str]) -> Iterator[str]:
    """Classes that metrics leave out, which would else show when all is trained and paid for."""
    never, always = _borne(tested, classes)
    known = ~np.any(_borne(records, classes), axis=0)  # of the others it is said already
    all_bear = always & known & tested.multi_label
    without = "have no value" if (never | always).all() else "leave it out"
    for which, words in ((never & known, "no test record bears"), (all_bear, "every test record bears")):
        if which.any():
            named = _named(classes, which)
            yield f"{words} {named}, so that such metrics as auc {without}; is `splits.test` too small?"


def _persons(options: dict, records: Records) -> Iterator[str]:
    if records.subjects is None:
        return
    names, images = np.unique([name_of(subject) for subject in records.subjects], return_counts=True)
    if options.get("unit") != "subject":
        if several := int((images > 1).sum()):
            yield (
                f"unit: record, and {several:,} of {len(names):,} persons have several images, up to {images.max()}: "
                "who has k of them is protected by k times epsilon, and a larger delta; unit: subject protects persons"
            )
        return
    yield from _spelled(names)
    rival, most = sorted([0, *images.tolist()])[-2:]
    if most >= max(_MANY_IMAGES, _FAR_MORE * rival):
        yield (
            f"{str(names[images.argmax()])!r} has {most} images, and nobody else more than {rival}; if it is no "
            "person, but stands for all who are not known, leave its rows out"
        )
    if options.get("per_subject", 1) > 1:
        if most == 1:
            yield "each image is of another person; is that what `subject_column` says?"
        elif most < options["per_subject"] and options.get("contributions") != "average":
            yield (
                f"nobody has more than {most} images, and per_subject is {options['per_subject']}: noise is drawn for "
                f"as many; give {most}"
            )


def _spelled(names: np.ndarray) -> Iterator[str]:
    """Names that may be one person's: they differ in case, blanks, the width of letters or leading zeros alone."""
    alike: dict[str, list[str]] = {}
    for name in names.tolist():
        letters = "".join(unicodedata.normalize("NFKC", name).casefold().split())
        alike.setdefault(_ZEROS.sub("", letters), []).append(name)
    if pairs := [each for each in alike.values() if len(each) > 1]:
        more = f" ({len(pairs) - 1:,} more likewise)" if len(pairs) > 1 else ""
        yield (
            f"{pairs[0][0]!r} and {pairs[0][1]!r} count as two persons{more}, and differ in case, blanks or leading "
            "zeros alone; if they are one, write them alike: who is protected as two persons is protected less"
        )


def _groups(records: Records) -> Iterator[str]:
    for name, values in records.groups.items():
        distinct = sorted(set(values))
        if len(distinct) == 1:
            yield f"all records are of one group {name!r} ({distinct[0]!r}); is the column right?"
        if len(distinct) > _MANY_GROUPS:
            yield f"the groups {name!r} are {len(distinct)}; give bands, or another column"
