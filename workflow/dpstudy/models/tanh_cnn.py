"""The convolutional networks of tramer2021 (Tables 6 to 9), with tanh after every layer except the last.

Layers: ("conv", filters, kernel, stride, padding), ("pool", kernel, stride) and ("full", units); the last full layer
has as many units as there are classes. Tables 8 and 9 print one pooling after each convolution, which gives 20,778 and
179,530 parameters where Table 4 counts 33K and 187K: it counts no pooling in Table 8's network (33,066) and one of the
two in Table 9's (187,210; after either convolution). `printed` keeps the tables' layout, for comparison.
"""

import math

from torch import nn

from dpstudy.core.errors import StudyError

_PAPERNOT = [("conv", 16, 8, 2, 2), ("pool", 2, 1), ("conv", 32, 4, 2, 0), ("pool", 2, 1), ("full", 32)]


def _double(*filters: int) -> list[tuple]:
    """Pairs of 3x3 convolutions, each pair pooled (Table 7)."""
    layers = []
    for first, second in zip(filters[::2], filters[1::2], strict=True):
        layers += [("conv", first, 3, 1, 1), ("conv", second, 3, 1, 1), ("pool", 2, 2)]
    return layers


LAYERS: dict[str, list[tuple]] = {
    # on pixels
    "tanh-28": _PAPERNOT,  # Table 6: 26,010 parameters on (1, 28, 28)
    "tanh-32": [*_double(32, 32, 64, 64, 128, 128), ("full", 128)],  # Table 7: 550,570 on (3, 32, 32)
    "tanh-32-smaller": [  # Table 7's caption: 167,642
        *_double(16, 16, 32, 32),
        ("conv", 64, 3, 1, 1),
        ("pool", 2, 2),
        ("full", 128),
    ],
    # on ScatterNet features
    "scatter-28": [("conv", 16, 3, 2, 1), ("conv", 32, 3, 1, 1), ("full", 32)],  # 33,066 on (81, 7, 7)
    "scatter-28-printed": [
        ("conv", 16, 3, 2, 1),
        ("pool", 2, 1),
        ("conv", 32, 3, 1, 1),
        ("pool", 2, 1),
        ("full", 32),
    ],  # Table 8 as printed: 20,778
    "scatter-32": [("conv", 64, 3, 1, 1), ("pool", 2, 2), ("conv", 64, 3, 1, 1)],  # 187,210 on (243, 8, 8)
    "scatter-32-printed": [
        ("conv", 64, 3, 1, 1),
        ("pool", 2, 2),
        ("conv", 64, 3, 1, 1),
        ("pool", 2, 2),
    ],  # Table 9 as printed: 179,530
    "scatter-32-smaller": [  # Table 9's caption
        *_double(16, 16),
        ("conv", 32, 3, 1, 1),
        ("conv", 32, 3, 1, 1),
    ],
}


def build(architecture: str, shape: tuple[int, ...], classes: int) -> nn.Sequential:
    """The network for records of shape (C, H, W), initialised by torch's global generator.

    Raises:
        StudyError: records that it cannot take.
    """
    if len(shape) != 3:
        raise StudyError(f"network {architecture!r}: needs features of layout (C, H, W), not {tuple(shape)}")
    channels, height, width = shape
    layers: list[nn.Module] = []
    size = [height, width]
    flat = None
    for kind, *options in (*LAYERS[architecture], ("full", classes)):
        if kind == "conv":
            filters, kernel, stride, padding = options
            layers += [nn.Conv2d(channels, filters, kernel, stride, padding), nn.Tanh()]
            channels, size = filters, [(side + 2 * padding - kernel) // stride + 1 for side in size]
        elif kind == "pool":
            kernel, stride = options
            layers.append(nn.MaxPool2d(kernel, stride))
            size = [(side - kernel) // stride + 1 for side in size]
        else:
            layers += [] if flat else [nn.Flatten()]
            layers += [nn.Linear(flat or channels * math.prod(size), options[0]), nn.Tanh()]
            flat = options[0]
        if min(size) < 1:
            raise StudyError(f"network {architecture!r}: records of {height}x{width} are too small for it")
    return nn.Sequential(*layers[:-1])  # the scores are not squashed
