"""Which splits a data set has, told from its config entry alone. Light to import: the workflow asks it of every set."""

from dpstudy.errors import StudyError


def split_fractions(splits: dict) -> tuple[float | None, float]:
    """The fractions (test, validation) of a config's `splits`; test is None where it is not given.

    Raises:
        StudyError: a key is unknown, a fraction is no number in [0, 1), or nothing would be left for train.
    """
    unknown = set(splits) - {"test", "validation"}
    if unknown:
        raise StudyError(f"splits: unknown key {min(unknown)!r}; it may have test and validation")
    for name, value in splits.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
            raise StudyError(f"splits: {name} is {value!r}; it must be a fraction from 0 to below 1")
    test, validation = splits.get("test"), splits.get("validation", 0)
    if (test or 0) + validation >= 1:
        raise StudyError(f"splits: test {test} and validation {validation} leave nothing for train")
    return test, validation


def split_names(options: dict, private: bool = True) -> tuple[str, ...]:
    """The splits that a data set will have, told from its config entry alone (the data are not opened).

    A public set (`private` False) has no test split unless its entry gives one.

    Raises:
        StudyError: as for `split_fractions`.
    """
    test, validation = split_fractions(splits_of(options, private))
    return ("train", *(["validation"] if validation else []), *(["test"] if test != 0 else []))


def splits_of(options: dict, private: bool) -> dict:
    """The `splits` of a data set's config entry; a public set has no test split unless it gives one."""
    splits = dict(options.get("splits") or {})
    if not private:
        splits.setdefault("test", 0)
    return splits
