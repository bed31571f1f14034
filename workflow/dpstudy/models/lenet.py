"""LeNet-5 (LeCun et al. 1998), the network of de2022's audit (A.2), with plain average pooling and a linear output."""

from torch import nn

from dpstudy.core.errors import StudyError


def build(architecture: str, shape: tuple[int, ...], classes: int) -> nn.Sequential:
    """LeNet-5: 5x5 convolutions to 6 and 16 maps with average pooling, layers of 120 and 84 units, and tanh.

    Images of 28x28 are padded by 2 pixels a side, as the paper's 32x32 are.

    Raises:
        StudyError: records that it cannot take.
    """
    if len(shape) != 3 or tuple(shape[1:]) not in ((28, 28), (32, 32)):
        raise StudyError(f"network {architecture!r}: needs images (C, H, W) of 28x28 or 32x32, not {tuple(shape)}")
    return nn.Sequential(
        nn.Conv2d(shape[0], 6, 5, padding=2 if shape[1] == 28 else 0),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(16 * 5 * 5, 120),
        nn.Tanh(),
        nn.Linear(120, 84),
        nn.Tanh(),
        nn.Linear(84, classes),
    )
