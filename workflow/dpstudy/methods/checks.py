"""Checks of hyper-parameters that come from plain arguments, not from a config that the schema has checked."""

import math
from collections.abc import Collection
from numbers import Real

from dpstudy.core.errors import StudyError


def one_of(method: str, key: str, value: object, allowed: Collection[str]) -> None:
    """Refuse a value that is none of `allowed`.

    Raises:
        StudyError: names the method, the key and what is allowed.
    """
    if value not in allowed:
        raise StudyError(f"{method}: {key} {value!r}: one of {', '.join(map(repr, allowed))}")


def positive(method: str, **values: float) -> None:
    """Refuse a value that is not a finite number above 0.

    Raises:
        StudyError: names the method and the key.
    """
    for key, value in values.items():
        if isinstance(value, bool) or not isinstance(value, Real) or not 0 < value < math.inf:
            raise StudyError(f"{method}: {key} {value!r}: must be a number above 0")


def count(method: str, **values: int) -> None:
    """Refuse a value that is not an integer of at least 1.

    Raises:
        StudyError: names the method and the key.
    """
    for key, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise StudyError(f"{method}: {key} {value!r}: must be an integer of at least 1")


def finite(method: str, model):
    """The model; one with a NaN or infinite weight is refused.

    Raises:
        StudyError: training diverged.
    """
    if not model.finite:
        raise StudyError(f"{method}: diverged, the weights are not finite; lower the learning rate or raise the ridge")
    return model
