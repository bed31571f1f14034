"""timm's networks adapted to private training: NF-ResNets and NFNets as in de2022, and any other by name.

"nf-resnet-D" (Brock et al. 2021, D of 26, 50, 101, 152, 200) and "nfnet-f0" to "nfnet-f6", timm's dm_nfnet, start from
scratch with SkipInit gains of 1 (de2022 C.1 says it of the first, and fine-tunes the second alone). "timm:NAME" is a
network of timm as it is. Private training cannot have batch normalisation: "timm:NAME+gn" has group normalisation in
its place, "timm:NAME+frozen" the affine map that it is with the statistics of the public weights to start from.
"timm:NAME@64" enlarges images to 64 x 64 first, each by itself. Dropout and stochastic depth
are off, and weight-standardised convolutions are this library's, which have a rule for their
per-record gradients. Weights start at random; timm fetches nothing.
"""

import logging
import math
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from dpstudy.core.errors import StudyError
from dpstudy.models.frozen_norm import FrozenBatchNorm2d
from dpstudy.models.names import NF_RESNET, NFNET, TIMM, enlarged
from dpstudy.models.standardised_conv import ScaledConv2d

_NF_RESNETS = {26: (2, 2, 2, 2), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3), 200: (3, 24, 36, 3)}
_GROUPS = 32  # at most, in place of batch normalisation
_log = logging.getLogger("dpstudy")


def build(architecture: str, shape: tuple[int, ...], classes: int, **overlay) -> nn.Module:
    """The network for records (C, H, W), initialised by torch's global generator.

    Args:
        overlay: for timm's builder, such as fewer or narrower layers.

    Raises:
        StudyError: no such network, or one that cannot take the records.
    """
    if len(shape) != 3:
        raise StudyError(f"network {architecture!r}: needs images (C, H, W), not records of shape {tuple(shape)}")
    if match := NF_RESNET.fullmatch(architecture):
        depth = int(match[1])
        if depth not in _NF_RESNETS:
            raise StudyError(f"network {architecture!r}: there are depths {', '.join(map(str, _NF_RESNETS))}")
        network = _create("nf_resnet50", shape, classes, **{"depths": _NF_RESNETS[depth], "skipinit": True} | overlay)
        _open_branches(network)
    elif match := NFNET.fullmatch(architecture):
        network = _create(f"dm_nfnet_f{match[1]}", shape, classes, **overlay)
        _open_branches(network)
    elif match := TIMM.fullmatch(architecture):
        name, side, converted = match.groups()
        size = enlarged(architecture) or shape[1:]
        network = _create(name, (shape[0], *size), classes, **overlay)
        if side:
            network.register_forward_pre_hook(partial(_at_size, size))
        if converted == "+gn":
            _without_batch_normalisation(architecture, network)
        elif converted:
            _replace(network, _frozen)
    else:
        raise StudyError(f"network {architecture!r}: there is none of that name")
    _without_chance(network)
    _standardise_ourselves(network)
    _check_images(architecture, network, shape)
    return network


def _at_size(size: tuple[int, int], network: nn.Module, given: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    return (functional.interpolate(given[0], size, mode="bilinear", antialias=True), *given[1:])


def _create(name: str, shape: tuple[int, ...], classes: int, **options) -> nn.Module:
    import timm

    if not timm.is_model(name):
        raise StudyError(f"network {name!r} is not one of timm {timm.__version__}'s")
    options |= {"num_classes": classes, "in_chans": shape[0], "drop_rate": 0.0}
    whole: dict[str, Any] = {"drop_path_rate": 0.0}
    reasons = []
    for more in (whole | {"img_size": shape[1:]}, whole, {}):  # transformers are made for one size of images
        try:
            return timm.create_model(name, pretrained=False, **options, **more)
        except TypeError as error:
            reasons.append(error)
    raise StudyError(f"network {name!r}: timm cannot make it for this task ({reasons[1]})")


def _without_chance(network: nn.Module) -> None:
    """No unit and no path is dropped: some networks have rates of their own, which no argument of timm's reaches."""
    for layer in network.modules():
        if isinstance(layer, nn.modules.dropout._DropoutNd):
            layer.p = 0.0
        elif "drop_prob" in vars(layer):
            vars(layer)["drop_prob"] = 0.0


def _open_branches(network: nn.Module) -> None:
    for name, value in network.named_parameters():
        if name.endswith("skipinit_gain"):
            nn.init.ones_(value)


def _replace(network: nn.Module, make) -> list[str]:
    """Replace every layer of which `make` makes another; their names."""
    replaced = []
    for name, layer in list(network.named_modules()):
        other = make(layer)
        if other is not None:
            parent, _, attribute = name.rpartition(".")
            setattr(network.get_submodule(parent), attribute, other)
            replaced.append(name)
    return replaced


def _without_batch_normalisation(architecture: str, network: nn.Module) -> None:
    def make(layer: nn.Module) -> nn.Module | None:
        if not isinstance(layer, nn.BatchNorm2d):
            return None
        groups = nn.GroupNorm(math.gcd(_GROUPS, layer.num_features), layer.num_features)
        if type(layer) is nn.BatchNorm2d:
            return groups
        # timm's normalisation with an activation
        return nn.Sequential(groups, layer.get_submodule("drop"), layer.get_submodule("act"))

    names = _replace(network, make)
    _log.info("network %s: batch became group normalisation in %s", architecture, ", ".join(names) or "no layer")


def _frozen(layer: nn.Module) -> nn.Module | None:
    return FrozenBatchNorm2d(layer) if isinstance(layer, nn.BatchNorm2d) else None


def _standardise_ourselves(network: nn.Module) -> None:
    from timm.layers import ScaledStdConv2d
    from timm.layers.std_conv import ScaledStdConv2dSame

    def make(layer: nn.Module) -> nn.Module | None:
        kinds = ScaledStdConv2d, ScaledStdConv2dSame
        if not isinstance(layer, kinds) or type(layer) not in kinds:
            return None
        ours = ScaledConv2d(
            layer.in_channels, layer.out_channels, layer.kernel_size, layer.stride, layer.padding, layer.dilation,
            layer.groups, layer.bias is not None, gamma=layer.scale * layer.weight[0].numel() ** 0.5, eps=layer.eps,
            same=getattr(layer, "same_pad", False),
        )  # fmt: skip
        ours.load_state_dict(layer.state_dict())
        return ours

    _replace(network, make)


def _check_images(architecture: str, network: nn.Module, shape: tuple[int, ...]) -> None:
    training = network.training
    try:
        with torch.inference_mode():
            network.eval()(torch.zeros(1, *shape))
    except (AssertionError, RuntimeError, ValueError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0].rstrip(".")
        raise StudyError(f"network {architecture!r} cannot take images (C, H, W) of {tuple(shape)}: {reason}") from None
    network.train(training)
