"""Facts about a data set that follow from its config entry alone, such as its splits. Light to import."""

from typing import NamedTuple

from dpstudy.core.errors import StudyError
from dpstudy.data.own import own_data
from dpstudy.schema.reading import schema

CHOSEN = (
    "A fixed number of training records was chosen from more, by the lowest hashes of their ids: the guarantee is for "
    "the data set of the chosen records; in the collection that they come from, adding one record may displace another."
)

TRUNCATED = (
    "Of a training record with more than {0} positive labels, {0} were kept, by a hash of its id: a rule about each "
    "record alone, which spends nothing."
)

WEIGHED = "Records count for the weights of their classes, which the config has: these numbers are taken to be public."

NUMBERED = (
    "Records that have neither a path nor an id go by their number: it decides their split, and which of a person's "
    "records, or of a record's labels, are kept. The guarantee takes a neighbouring data set to leave a gap there; "
    "where a row is deleted and the others are numbered anew, these change places too."
)


class Fractions(NamedTuple):
    """The config's `splits`; test is None where it is not given. Records left out belong to no split.

    `records`: how many train and validation together have, instead of what `left_out` leaves; None for all. `draw`:
    which of many ways to cut, each as good as another.
    """

    test: float | None
    validation: float
    left_out: float
    records: int | None
    draw: int


# Keys of a private set's entry that say what a record counts for, in sums and in the ledger.
COUNTED = ("delta", "unit", "per_subject", "contributions", "class_weights", "positives", "beyond")
LABELS = "labels"  # the reader without images: features are brought by the number of a row, or by an id


def split_fractions(splits: dict) -> Fractions:
    """The validated fractions of a config's `splits`.

    Raises:
        StudyError: a key is unknown, a fraction is no number in [0, 1), `records` or `draw` is no count, `records`
            stands beside `left_out`, or nothing would be left for train.
    """
    unknown = set(splits) - set(Fractions._fields)
    if unknown:
        raise StudyError(f"splits: unknown key {min(unknown)!r}; it may have {', '.join(Fractions._fields)}")
    for name, value in splits.items():
        if (least := {"records": 1, "draw": 0}.get(name)) is not None:
            if type(value) is not int or value < least:
                raise StudyError(f"splits: {name} is {value!r}; it must be an integer of at least {least}")
        elif isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
            raise StudyError(f"splits: {name} is {value!r}; it must be a fraction from 0 to below 1")
    if splits.get("left_out") and "records" in splits:
        raise StudyError("splits: give either left_out, a fraction, or records, a number")
    parts = splits.get("test"), splits.get("validation", 0), splits.get("left_out", 0)
    fractions = Fractions(*parts, splits.get("records"), splits.get("draw", 0))
    if (fractions.test or 0) + fractions.validation + fractions.left_out >= 1:
        named = ", ".join(f"{name} {value}" for name, value in splits.items())
        raise StudyError(f"splits: {named} leave nothing for train")
    return fractions


def split_names(options: dict, private: bool = True) -> tuple[str, ...]:
    """The names of a data set's splits, from its config entry alone (the data are not opened).

    A public set (`private` False) has no test split unless its entry gives one.

    Raises:
        StudyError: as for `split_fractions`.
    """
    fractions = split_fractions(splits_of(options, private))
    return ("train", *(["validation"] if fractions.validation else []), *(["test"] if fractions.test != 0 else []))


def splits_of(options: dict, private: bool) -> dict:
    """The `splits` of a data set's config entry; a public set has no test split unless the entry gives one."""
    splits = dict(options.get("splits") or {})
    if not private:
        splits.setdefault("test", 0)
    return splits


def caveats(options: dict, numbered: bool = False) -> list[str]:
    """Sentences that every ledger on a data set must state about how its records were chosen and labelled.

    The config's own sentences (`not_accounted`), one where a fixed number of records was chosen, one where labels
    were dropped, one where classes have weights, and one where numbers decide about a user's own records.

    Args:
        numbered: the user's own records keep row numbers (spending.Spending.numbered).
    """
    chosen = "records" in options.get("splits", {}) or "records" in options.get("extra", {})
    cut = [TRUNCATED.format(options["positives"])] if options.get("beyond") == "truncate" else []
    splits = options.get("splits", {})
    decided = any(splits.values()) or options.get("unit") == "subject" or options.get("beyond") == "truncate"
    named_by_owner = own_data(options.get("reader")) and may_be_numbered(options)
    goes_by_numbers = named_by_owner and decided and (numbered or options["reader"] == LABELS)
    weighed = [WEIGHED] if "class_weights" in options else []
    sentences = [*([CHOSEN] if chosen else []), *cut, *weighed, *([NUMBERED] if goes_by_numbers else [])]
    return [*options.get("not_accounted", []), *sentences]


def is_drawn_by(reader: str) -> bool:
    """Whether a reader's images are generated by a program that has seen no images."""
    return reader in schema("config")["$defs"]["source"]["x-drawn"]


def crops(reader: str) -> bool:
    """Whether a reader crops images by default (rather than stretching them), where the option `resize` is absent."""
    return reader in schema("config")["$defs"]["source"]["x-crops"]


def may_be_numbered(source: dict) -> bool:
    """Whether the records of a source may be named by their row number alone."""
    return source.get("reader") in schema("config")["$defs"]["source"]["x-numbered"] and "path_column" not in source
