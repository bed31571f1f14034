"""Private training from public pre-trained weights (de2022 section 4), for all layers but the classifier."""

import contextlib
import os
from collections.abc import Mapping

import torch
from torch import nn

from dpstudy.core.errors import StudyError
from dpstudy.features.weights import check_file, read_shapes, read_weights
from dpstudy.methods.checks import count, one_of
from dpstudy.models import networks
from dpstudy.models.lora import adapt
from dpstudy.models.names import relatives

TRAINED = ("all", "classifier", "biases")
_STATISTICS = (".running_mean", ".running_var")  # of public images: never trained (models/frozen_norm.py)
_RANK = "lora"  # {lora: r}: a low-rank layer beside each linear one
HEAD_FIRST = "head_first"  # {head_first: k}: all layers, after k steps of the classifier alone
_LAST = "last"  # {last: k}: the last k layers before the classifier


def read_start(path: str | os.PathLike, start: str | dict) -> dict[str, torch.Tensor]:
    """The tensors of a file of pre-trained weights.

    Args:
        start: the entry's option: the name of a backbone, or a file with the `sha256` that it must have, if any.

    Raises:
        StudyError: the file is missing, damaged or another one.
    """
    check_file(path, start.get("sha256") if isinstance(start, dict) else None)
    return read_weights(path)


def begin(network: nn.Module, tensors: dict[str, torch.Tensor], name: str, shape: tuple[int, ...]) -> None:
    """Copy all tensors but those of the classifier into a network.

    Args:
        name: of the network, which takes records of this shape (C, H, W).

    Raises:
        StudyError: a parameter has no tensor of its shape; names the network that the tensors are of, if one is near.
    """
    if wrong := misfit({key: tuple(value.shape) for key, value in tensors.items()}, network, name, shape):
        raise StudyError(f"start: {wrong}")
    with torch.no_grad():
        for key, value in _body(network):
            value.copy_(tensors[key])


def check_start(path: str | os.PathLike, name: str, shape: tuple[int, ...], sized: bool) -> None:
    """Refuse a file of weights that does not fit a network, by its header alone.

    Args:
        shape: of records (C, H, W), as far as it is known before one is read.
        sized: whether it is; otherwise shapes of parameters are not compared.

    Raises:
        StudyError: as `begin`.
    """
    shapes = read_shapes(path)
    try:
        network = _outline(name, shape)
    except (StudyError, RuntimeError):  # another image size, or code that reads values, which tensors on meta lack
        return
    if wrong := misfit(shapes, network, name, shape, sized):
        raise StudyError(f"{path}: {wrong}")


def misfit(
    shapes: Mapping[str, tuple[int, ...]], network: nn.Module, name: str, shape: tuple[int, ...], sized: bool = True
) -> str:
    """Why tensors of these shapes cannot initialise a network, in a sentence; "" where they can."""
    if not (wrong := _misfit(shapes, network, sized)):
        return ""
    for other in relatives(name):
        with contextlib.suppress(StudyError, RuntimeError):
            if not _misfit(shapes, _outline(other, shape), sized):
                return f"its tensors are not those of network {name!r} but of {other!r}; write `network: {other}`"
    return f"{wrong[0]} of network {name!r}: the file {wrong[1]}; mend `network`"


def _misfit(shapes: Mapping[str, tuple[int, ...]], network: nn.Module, sized: bool) -> tuple[str, str] | None:
    for key, value in _body(network):
        given = shapes.get(key)
        if given is None:
            return f"the parameter {key!r}", "lacks it"
        if sized and given != tuple(value.shape):
            return f"the parameter {key!r}", f"has it with shape {given}, not {tuple(value.shape)}"
    return None


def _body(network: nn.Module) -> list[tuple[str, nn.Parameter]]:
    head = networks.classifier(network)
    return [(key, value) for key, value in network.named_parameters() if not key.startswith(f"{head}.")]


def _outline(name: str, shape: tuple[int, ...]) -> nn.Module:
    """The network on torch's meta device, where its tensors take no memory."""
    with torch.device("meta"):
        return networks.build(name, shape, 2)


def check_trained(trained: str | Mapping[str, int]) -> None:
    """Refuse a `trained` that names no part of a network.

    Raises:
        StudyError: no such part of a network.
    """
    if isinstance(trained, str):
        one_of("network_dpsgd", "trained", trained, TRAINED)
        return
    if set(trained) not in ({_RANK}, {_LAST}, {HEAD_FIRST}):
        raise StudyError(
            f"network_dpsgd: trained {dict(trained)!r}: must be {{last: layers}}, {{lora: rank}} or "
            "{head_first: steps}"
        )
    count("network_dpsgd", **{f"trained.{key}": value for key, value in trained.items()})


def choose_trained(network: nn.Module, trained: str | Mapping[str, int], seed: int = 0) -> None:
    """Freeze all parameters of a network but those of its classifier and of the part that `trained` names.

    Args:
        trained: "all"; "classifier"; "biases", each layer's (Zaken et al. 2022); {"last": k}, the last k layers with
            parameters before the classifier, in the order in which the network lists them; {"lora": r}, low-rank layers
            beside its linear ones (models/lora.py), which this puts there; {"head_first": k}, all.
        seed: of the low-rank layers.

    Raises:
        StudyError: the network has no such part.
    """
    if trained == "all" or HEAD_FIRST in trained:
        return
    head = networks.classifier(network)
    network.requires_grad_(False)
    network.get_submodule(head).requires_grad_(True)
    body = [name for name, _ in _body(network)]
    if trained == "biases":
        chosen = [name for name in body if name.rpartition(".")[2] == "bias"]
    elif isinstance(trained, str):
        return
    elif _LAST in trained:
        layers = list(dict.fromkeys(name.rpartition(".")[0] for name in body))
        if trained[_LAST] > len(layers):
            raise StudyError(
                f"trained.last: {trained[_LAST]}: the network has {len(layers)} layers before its classifier"
            )
        last = layers[-trained[_LAST] :]
        chosen = [name for name in body if name.rpartition(".")[0] in last]
    else:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            adapted = adapt(network, trained[_RANK], head)
        chosen = [f"{name}.{part}.weight" for name in adapted for part in ("down", "up")]
    if not chosen:
        what = trained if isinstance(trained, str) else next(iter(trained))
        raise StudyError(f"trained: the network has nothing for {what!r} to train; choose another part")
    for name, value in network.named_parameters():
        if name in chosen and not name.endswith(_STATISTICS):
            value.requires_grad_(True)
