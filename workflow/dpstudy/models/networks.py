"""The networks that can be trained privately, by name."""

from collections.abc import Callable, Mapping

import torch
from torch import nn

from dpstudy.core.errors import StudyError
from dpstudy.models import equivariant_resnet, lenet, names, tanh_cnn, timm_network, wide_resnet


def check(architecture: str) -> None:
    """Check that a network of this name exists.

    Raises:
        StudyError: no network has it.
    """
    _family(architecture)


def is_shipped(architecture: str) -> bool:
    """Whether all code of the network is this library's (or torch's layers), known not to mix records.

    A name that is added to `_family` is not, nor are timm's networks.
    """
    return architecture in (*tanh_cnn.LAYERS, "lenet", names.EQUIVARIANT) or names.is_wide_resnet(architecture)


def is_laid_channels_last(architecture: str) -> bool:
    """Whether training lays images and maps out channels-last in memory, which is faster.

    Code that was not written with it in mind may fail on it.
    """
    return is_shipped(architecture) or names.is_normaliser_free(architecture)


def build(architecture: str, shape: tuple[int, ...], classes: int) -> nn.Module:
    """The network for records of layout `shape` = (C, H, W), initialised by torch's global generator.

    Raises:
        StudyError: no such architecture, or records that it cannot take.
    """
    return builder(architecture)(architecture, shape, classes)


def builder(architecture: str) -> Callable[..., nn.Module]:
    """The function that builds the network from its name, shape and number of classes.

    Raises:
        StudyError: no such architecture.
    """
    return _family(architecture).build


def check_promise(make: Callable[[], nn.Module], tensors: Mapping, sentence: str) -> None:
    """Check that a network has the shapes of a file's tensors before memory is allocated for it.

    Its name and numbers may promise more than the file holds.

    Args:
        make: makes the network.
        tensors: arrays by the names of its parameters and buffers; others may be there, and buffers may not.
        sentence: what is wrong where they do not fit.

    Raises:
        StudyError: a parameter is missing there, or has another shape, or one that is no number of the network's kind.
    """
    try:
        with torch.device("meta"):  # tensors on it take no memory
            network = make()
    except RuntimeError as error:
        if "meta" in str(error):  # a network of one's own, which looks at numbers while it is made
            return
        raise
    expected, missing = network.state_dict(), dict(network.named_parameters()).keys() - tensors.keys()
    other = [
        name
        for name in expected.keys() & tensors.keys()
        if tensors[name].shape != tuple(expected[name].shape)
        or (tensors[name].dtype.kind == "f") != expected[name].is_floating_point()
    ]
    if missing or other:
        raise StudyError(sentence)


def classifier(network: nn.Module) -> str:
    """The name of a network's last linear layer, its classifier."""
    return [name for name, layer in network.named_modules() if isinstance(layer, nn.Linear)][-1]


def _family(architecture: str):
    """The module that builds it."""
    if architecture in tanh_cnn.LAYERS:
        return tanh_cnn
    if architecture == "lenet":
        return lenet
    if names.is_wide_resnet(architecture):
        return wide_resnet
    if architecture == names.EQUIVARIANT:
        return equivariant_resnet
    if names.is_timm_network(architecture):
        return timm_network
    raise StudyError(
        f"network {architecture!r}: there is none of that name; one of {', '.join(tanh_cnn.LAYERS)}, lenet, "
        f"{names.EQUIVARIANT}, a Wide ResNet such as wrn-16-4, nf-resnet-50, nfnet-f3, or timm:NAME"
    )
