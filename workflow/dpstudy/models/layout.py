"""Checks that the arrays in a model's file have consistent shapes, before anything is computed with them.

Arrays would otherwise be broadcast over the axes of others, and a number may ask for any amount of memory.
"""

import json
import math
import os
from collections.abc import Mapping

import numpy as np

from dpstudy.core.errors import StudyError

MOST_SIDE = 4096  # pixels of an image that a network or a bundle takes


def check_layout(
    where: str | os.PathLike, tensors: Mapping[str, np.ndarray], layout: Mapping[str, str], optional: str = ""
) -> None:
    """Check floating-point arrays against their expected axes.

    Args:
        layout: name -> a letter for each axis; axes of one letter are of one length.
        optional: names that may be missing, in a row.

    Raises:
        StudyError: one is missing, unknown, no float, or of another shape.

    >>> check_layout("a file", {"weights": np.ones((3, 2)), "bias": np.ones(1)}, {"weights": "md", "bias": "m"})
    Traceback (most recent call last):
    dpstudy.core.errors.StudyError: a file: the tensor 'bias' is float64 of (1,), and does not fit the others
    """
    lengths: dict[str, int] = {}
    for name in sorted(tensors.keys() | layout.keys()):
        if name not in layout or (name not in tensors and name not in optional.split()):
            raise StudyError(f"{where}: the tensor {name!r} is {'unknown' if name in tensors else 'missing'}")
    for name, axes in layout.items():
        if name not in tensors:
            continue
        kind, shape = tensors[name].dtype, tensors[name].shape
        fits = kind.kind == "f" and len(shape) == len(axes) and 0 not in shape
        if not fits or any(lengths.setdefault(*axis) != axis[1] for axis in zip(axes, shape, strict=True)):
            raise StudyError(f"{where}: the tensor {name!r} is {kind} of {shape}, and does not fit the others")


def shape_of(where: str | os.PathLike, text: str) -> tuple[int, ...]:
    """The shape in a JSON list: (C, H, W), (H, W) or (d,).

    Raises:
        StudyError: it is no such list, or an image would have more than 4,096 pixels a side.

    >>> shape_of("a file", "[3, 32, 32]")
    (3, 32, 32)
    """
    try:
        shape = json.loads(text)
    except (ValueError, RecursionError):
        shape = None
    listed = isinstance(shape, list) and 1 <= len(shape) <= 3 and all(type(side) is int and side > 0 for side in shape)
    if not listed or (len(shape) > 1 and max(shape[-2:]) > MOST_SIDE):
        raise StudyError(f"{where}: {text[:50]!r} is no shape of records, with at most {MOST_SIDE} pixels a side")
    return tuple(shape)


def positive(where: str | os.PathLike, facts: Mapping[str, str], name: str) -> float:
    """The positive number in the text `facts[name]`.

    Raises:
        StudyError: it is none.
    """
    try:
        number = float(facts.get(name, ""))
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise StudyError(f"{where}: {name} is {facts.get(name)!r}, and must be a number above 0")
    return number
