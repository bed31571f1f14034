"""The networks that are pre-trained on public images, from a backbone's options."""

from collections.abc import Mapping

from torch import nn

from dpstudy.models import wide_resnet
from dpstudy.models.small_cnn import SmallCNN


def build(options: Mapping, image_shape: tuple[int, int, int], classes: int) -> nn.Module:
    """The network for images (H, W, C), at a random start."""
    height, width, channels = image_shape
    if options["architecture"] == "small_cnn":
        return SmallCNN(channels, classes, options["width"], options["embedding"])
    return wide_resnet.build(options["architecture"], (channels, height, width), classes)
