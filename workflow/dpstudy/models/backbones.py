"""Networks for public pre-training (backbones), built from a backbone's options."""

from collections.abc import Mapping

from torch import nn

from dpstudy.core.errors import StudyError
from dpstudy.models import networks
from dpstudy.models.patches import Patches
from dpstudy.models.small_cnn import SmallCNN

POOLS = {"token": "token", "mean": "avg"}  # our name of what a network with tokens gives, and timm's


def build(options: Mapping, image_shape: tuple[int, int, int], classes: int) -> nn.Module:
    """The network for images (H, W, C), randomly initialised.

    Raises:
        StudyError: no such architecture, or images that it cannot take.
    """
    height, width, channels = image_shape
    if options["architecture"] == "small_cnn":
        return SmallCNN(channels, classes, options["width"], options["embedding"])
    if options["architecture"] == "patches":
        return Patches.of(options, channels)
    return networks.build(options["architecture"], (channels, height, width), classes)


def classifier(network: nn.Module) -> str:
    """The name of the classification layer; "" where there is none."""
    if isinstance(network, Patches):
        return ""
    named = getattr(network, "pretrained_cfg", {}).get("classifier")  # timm's
    return named if isinstance(named, str) else networks.classifier(network)


def body(network: nn.Module, pool: str = "model") -> nn.Module:
    """The network without its classifier: images (n, C, H, W) to (n, d). The network may be changed in place.

    Args:
        pool: of networks with tokens: "token", the class token, or "mean", the mean of the others; or "model".

    Raises:
        StudyError: the network has no such pooling.
    """
    if pool != "model" and not hasattr(network, "num_prefix_tokens"):  # timm's networks with tokens count them
        raise StudyError(f"pool: a {type(network).__name__} has no tokens to choose from; leave `pool` out")
    if isinstance(network, SmallCNN):
        network.classifier = nn.Identity()
        return network
    if isinstance(network, Patches):
        return network
    if isinstance(network, nn.Sequential):  # a Wide ResNet
        return network[:-1]
    if pool == "model":
        _without_classifier(network)
    else:
        _pool(network, pool)
    return network


def _without_classifier(network: nn.Module, **pooling: str) -> None:
    """Of timm's networks, which all have this method."""
    network.reset_classifier(0, **pooling)  # type: ignore[operator]  # torch has tensors and modules alone as attributes


def _pool(network: nn.Module, pool: str) -> None:
    try:
        _without_classifier(network, global_pool=POOLS[pool])
    except (AssertionError, TypeError, ValueError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise StudyError(f"pool: the network does not take {pool!r} ({reason}); leave `pool` out") from None
