"""The models of tramer2021 as printed, layer by layer (workflow/published/architectures.csv), and parameter counts."""

import math
import re
from collections.abc import Sequence

from dpstudy.core.errors import StudyError
from dpstudy.tables.published import ARCHITECTURES, published_rows

Layer = tuple[str, tuple[int, ...]]  # conv (filters, kernel, stride, padding), pool (kernel, stride), full (units)
_PAPER = "tramer2021"
_SHAPES = {  # of one record
    "End-to-end CNN (MNIST and Fashion-MNIST)": (1, 28, 28),
    "End-to-end CNN (CIFAR-10)": (3, 32, 32),
    "End-to-end CNN, smaller (CIFAR-10)": (3, 32, 32),
    "ScatterNet+CNN (MNIST and Fashion-MNIST)": (81, 7, 7),
    "ScatterNet+CNN (CIFAR-10)": (243, 8, 8),
    "ScatterNet+Linear (MNIST and Fashion-MNIST)": (81, 7, 7),
    "ScatterNet+Linear (CIFAR-10)": (243, 8, 8),
}
_SMALLER = "End-to-end CNN, smaller (CIFAR-10)"  # Table 7's caption: its filters halved, its last convolution removed


def table_4() -> dict[str, str]:
    """Model -> its number of parameters as printed in Table 4, such as 40K."""
    return {row["model"]: row["parameters"] for row in published_rows(ARCHITECTURES, _PAPER) if row["table"] == "4"}


def parameters(model: str, without_pools: Sequence[int] = ()) -> int:
    """The number of parameters of a model of Table 4, by the layers printed in Tables 5 to 9.

    Args:
        model: as Table 4 (in architectures.csv) calls it.
        without_pools: which of its poolings to leave out, counted from 0.

    Raises:
        StudyError: no such model.
    """
    if model not in _SHAPES:
        raise StudyError(f"{ARCHITECTURES.name}: no layers are known of {model!r}; there are {', '.join(_SHAPES)}")
    layers = _layers(model)
    pools = [index for index, (kind, _) in enumerate(layers) if kind == "pool"]
    dropped = {pools[number] for number in without_pools}
    return count([layer for index, layer in enumerate(layers) if index not in dropped], _SHAPES[model])


def count(layers: Sequence[Layer], shape: tuple[int, int, int]) -> int:
    """The number of weights and biases of these layers on records of shape (channels, height, width)."""
    (channels, *size), total, flat = shape, 0, None
    for kind, numbers in layers:
        if kind == "conv":
            filters, kernel, stride, padding = numbers
            total += filters * (channels * kernel**2 + 1)
            channels, size = filters, [(side + 2 * padding - kernel) // stride + 1 for side in size]
        elif kind == "pool":
            kernel, stride = numbers
            size = [(side - kernel) // stride + 1 for side in size]
        else:
            total += ((flat or channels * math.prod(size)) + 1) * numbers[0]
            flat = numbers[0]
    return total


def _layers(model: str) -> list[Layer]:
    """The layers of a model of Table 4; those of a smaller variant follow from the larger one's."""
    if model == _SMALLER:
        layers = _layers(model.replace(", smaller", ""))
        convolutions = [index for index, (kind, _) in enumerate(layers) if kind == "conv"]
        del layers[convolutions[-1]]
        return [(kind, (n[0] // 2, *n[1:])) if kind == "conv" else (kind, n) for kind, n in layers]
    printed = model.replace("ScatterNet+Linear (MNIST and Fashion-MNIST)", "ScatterNet+Linear (MNIST)")
    rows = [row for row in published_rows(ARCHITECTURES, _PAPER) if row["layer_index"]]
    own = (row for row in rows if row["model"].startswith(printed))
    return [layer for row in own for layer in _parsed(row["layer"], row["parameters"])]


def _parsed(kind: str, text: str) -> list[Layer]:
    numbers = [int(number) for number in re.findall(r"\d+", text)]
    if kind.startswith("Convolution"):
        filters, kernel, _, stride, padding = numbers
        return [("conv", (filters, kernel, stride, padding))] * (2 if kind.endswith("x2") else 1)
    if kind == "Max-Pooling":
        return [("pool", (numbers[0], numbers[2]))]
    if kind == "Fully connected":
        return [("full", (numbers[0],))]
    return [("full", (numbers[1],))] if kind.startswith("Linear") else []
