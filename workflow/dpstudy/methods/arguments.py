"""Checks of the arguments of `dpstudy.fit` and `dpstudy.predict`, with errors of one sentence."""

import math
import operator
from collections.abc import Sequence
from numbers import Real

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.core.subjects import check_named, name_of


def array_of(values, what: str) -> np.ndarray:
    """A dense array from an argument: a list, an array, a data frame or a tensor.

    Raises:
        StudyError: it is sparse or masked, or no array at all.
    """
    if hasattr(values, "toarray"):
        raise StudyError(f"{what} are sparse: give a dense array, {what}.toarray()")
    if np.ma.isMaskedArray(values):
        raise StudyError(f"{what} are masked: what stands behind the mask would be used; leave those rows out")
    try:
        return np.asarray(values)
    except (ValueError, TypeError, RuntimeError) as error:
        raise StudyError(f"{what} are no array: {_first_line(error)}") from None


def features_of(values) -> np.ndarray:
    """(n, d) real-valued features.

    Raises:
        StudyError: another shape, no column, or something that is not a real number.
    """
    features = array_of(values, "features")
    if features.ndim != 2 or not features.shape[1]:
        raise StudyError(f"features of shape {features.shape}: must be (n, d), a row for each record")
    if features.dtype.kind == "O":  # of a data frame whose columns differ
        try:
            features = features.astype(np.float32)
        except (ValueError, TypeError) as error:
            raise StudyError(f"features are not all numbers: {_first_line(error)}") from None
    if features.dtype.kind not in "biuf":
        raise StudyError(f"features are of type {features.dtype}: must be real numbers")
    return features


def labels_of(values, rows: int) -> np.ndarray:
    """(rows,) or (rows, classes) labels; their values are checked later, where they are used.

    Raises:
        StudyError: another shape.
    """
    labels = array_of(values, "labels")
    if labels.ndim not in (1, 2) or len(labels) != rows:
        raise StudyError(f"labels of shape {labels.shape}: must be ({rows},) or ({rows}, classes)")
    return labels


def classes_of(labels: np.ndarray, classes) -> int:
    """The number of classes: as given, or else derived from the labels.

    Raises:
        StudyError: it is no integer of at least 1, or labels are no class indices.
    """
    if classes is not None:
        return integer_of(classes, "classes", 1)
    if labels.ndim == 2:
        return labels.shape[1]
    if labels.dtype.kind not in "iu":
        raise StudyError(f"labels are of type {labels.dtype}: class indices must be integers")
    return max(1, int(labels.max()) + 1)


def subjects_of(values, rows: int) -> np.ndarray:
    """(rows,) subjects: integers are kept, other values become text (subjects.name_of).

    Raises:
        StudyError: another shape, or a record whose person is not known (subjects.check_named).
    """
    subjects = array_of(values, "subjects")
    if subjects.shape != (rows,):
        raise StudyError(f"subjects of shape {subjects.shape}: must be ({rows},), whose each record is")
    given = subjects.tolist()
    exact = {"exact": 2 ** (np.finfo(subjects.dtype).nmant + 1)} if subjects.dtype.kind == "f" else {}
    check_named(given, lambda row: f"row {row}", **exact)
    return subjects if subjects.dtype.kind in "iu" else np.array([name_of(value) for value in given])


def shape_of(shape: Sequence[int] | None, dim: int) -> tuple[int, ...]:
    """The shape of one record's features, such as (C, H, W); (d,) where none is given.

    Raises:
        StudyError: it does not have as many numbers as a record.
    """
    if shape is None:
        return (dim,)
    if isinstance(shape, str) or not isinstance(shape, Sequence):
        raise StudyError(f"shape {shape!r}: must be integers such as (1, 28, 28)")
    sizes = tuple(integer_of(size, "shape", 1) for size in shape)
    if math.prod(sizes) != dim:
        raise StudyError(f"shape {sizes} has {math.prod(sizes)} numbers, but records have {dim} features")
    return sizes


def integer_of(value, what: str, least: int | None = None) -> int:
    """An argument as an integer, of at least `least`.

    Raises:
        StudyError: it is none.
    """
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool) or (least is not None and number < least):
        more = "" if least is None else f" of at least {least}"
        raise StudyError(f"{what} {value!r}: must be an integer{more}")
    return number


def epsilon_of(value) -> str:
    """A target epsilon as a config spells it, with all digits, since rounding up would spend more than was asked for.

    >>> epsilon_of(2), epsilon_of(2.9999999), epsilon_of(float("inf")), epsilon_of("0.5")
    ('2', '2.9999999', 'inf', '0.5')

    Raises:
        StudyError: neither text nor a number.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, Real):
        raise StudyError(f"epsilon {value!r}: must be a number above 0, or 'inf'")
    return np.format_float_positional(value if isinstance(value, np.floating) else float(value), trim="-")


def delta_of(value, n: int) -> float:
    """The delta of the guarantee, which must be below 1/n.

    Raises:
        StudyError: it is not, or is no number.
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise StudyError(f"delta {value!r}: must be a number between 0 and 1/n = 1/{n}")
    if not value < 1 / n:
        raise StudyError(
            f"delta {value!r} is not below 1/n = 1/{n}: a guarantee that weak permits publishing a record outright"
        )
    return float(value)


def share_of(value) -> float | str:
    """A share of the privacy budget, or "auto".

    Raises:
        StudyError: it does not lie between 0 and 1.
    """
    if isinstance(value, str) and value == "auto":
        return value
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < 1:
        raise StudyError(
            f"calibration {value!r}: must be 'auto', or a number between 0 and 1, the share of mu^2 that it takes"
        )
    return float(value)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
