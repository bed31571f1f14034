"""The networks that are trained privately, by name."""

from torch import nn

from dpstudy.errors import StudyError
from dpstudy.models import tanh_cnn, wide_resnet


def check(architecture: str) -> None:
    """Check a name.

    Raises:
        StudyError: no network has it.
    """
    if architecture not in tanh_cnn.LAYERS and not wide_resnet.is_wide_resnet(architecture):
        raise StudyError(
            f"network {architecture!r}: there is none of that name; one of {', '.join(tanh_cnn.LAYERS)}, or a Wide "
            "ResNet such as wrn-16-4"
        )


def build(architecture: str, shape: tuple[int, ...], classes: int) -> nn.Module:
    """The network for records of layout `shape` = (C, H, W), initialised by torch's global generator.

    Raises:
        StudyError: no such architecture, or records that it cannot take.
    """
    check(architecture)
    family = tanh_cnn if architecture in tanh_cnn.LAYERS else wide_resnet
    return family.build(architecture, shape, classes)
