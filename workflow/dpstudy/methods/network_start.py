"""Starting a private training from public weights (de2022 section 4): all but the classifier, which starts anew."""

import os

import torch
from torch import nn

from dpstudy.core.errors import StudyError
from dpstudy.features.weights import check_file, read_weights
from dpstudy.models import networks

TRAINED = ("all", "classifier")


def read_start(path: str | os.PathLike, start: str | dict) -> dict[str, torch.Tensor]:
    """The tensors of a file of weights.

    Args:
        start: the entry's option: the name of a backbone, or a file with the `sha256` that it must have, if any.

    Raises:
        StudyError: the file is missing, damaged or another one.
    """
    check_file(path, start.get("sha256") if isinstance(start, dict) else None)
    return read_weights(path)


def begin(network: nn.Module, tensors: dict[str, torch.Tensor], name: str) -> None:
    """Copy every tensor but the classifier's into a network.

    Raises:
        StudyError: a parameter has no tensor of its shape.
    """
    head = networks.classifier(network)
    for key, value in network.named_parameters():
        if key.startswith(f"{head}."):
            continue
        given = tensors.get(key)
        if given is None or given.shape != value.shape:
            what = "lacks it" if given is None else f"has it with shape {tuple(given.shape)}, not {tuple(value.shape)}"
            raise StudyError(f"start: the parameter {key!r} of network {name!r}: the file {what}; mend `network`")
        with torch.no_grad():
            value.copy_(given)


def freeze_body(network: nn.Module) -> None:
    """Leave the classifier alone to be trained."""
    network.requires_grad_(False)
    network.get_submodule(networks.classifier(network)).requires_grad_(True)
