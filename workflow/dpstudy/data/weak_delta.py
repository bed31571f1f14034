"""Checks of delta against 1/n: a delta above it would permit publishing a record outright."""

import logging
from decimal import ROUND_FLOOR, Decimal

from dpstudy.core.errors import StudyError
from dpstudy.data.own import own_reader

_log = logging.getLogger("dpstudy")


def check_delta(dataset: str, options: dict, n: int) -> None:
    """Refuse a delta of 1/n or more on a user's own data; elsewhere warn.

    Args:
        dataset: its name.
        options: with its reader, delta (a string), unit and `extra`, where it has one.
        n: how many units (records, or subjects) are learned from.

    Raises:
        StudyError: delta is not below 1/n on own data (elsewhere that is a warning).
    """
    if float(options["delta"]) < 1 / n:
        return
    sentence = (
        f"datasets.{dataset}.delta: {options['delta']} is not below 1/n = 1/{n}"
        f"{' for so many subjects' if options.get('unit') == 'subject' else ''}; "
        f"a guarantee that weak permits publishing a record outright; choose at most {_tenth_of(n)}"
    )
    if own_reader(options):
        raise StudyError(sentence)
    _log.warning("%s", sentence)


def _tenth_of(n: int) -> str:
    """A tenth of 1/n, rounded down to one digit.

    >>> _tenth_of(62), _tenth_of(100)
    ('0.001', '0.001')
    """
    tenth = Decimal(1) / (10 * n)
    return f"{float(tenth.quantize(Decimal(1).scaleb(tenth.adjusted()), ROUND_FLOOR)):g}"
