"""Public preconditioning of gradients before clipping (DP-KFC, Molina Van den Bosch et al. 2026, arXiv 2605.13418).

Of each layer the second moments of what comes in (A) and of the loss' gradient by what goes out (G) are taken on drawn
pictures: noise with the spectrum of photographs, and labels by chance. A record's gradient g, (outputs, inputs) with a
convolution's patches as inputs, becomes L g R, L = (G + damping)^-1/2 and R = (A + damping)^-1/2, is clipped over all
layers together, and moves the weights as it is. No record has a part in the maps, so that the proof is that of the
clipped gradient: its norm is at most C, whatever it was mapped by. Maps are those of the network as training starts.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from dpstudy.core.errors import StudyError
from dpstudy.models.preconditioned import Preconditioned
from dpstudy.schema.hyperparameters import Hyperparameters, setting

_BLOCK = 32  # pictures at a time


@dataclass(frozen=True)
class Preconditioning(Hyperparameters):
    """The parameters of preconditioners."""

    damping: float = setting(0.01, "Added to the second moments, a share of their mean eigenvalue.", above=0)
    pictures: int = setting(256, "Drawn pictures that second moments are taken on.", least=1)

    METHOD: ClassVar[str] = "preconditioning"


def precondition(network: nn.Module, rule: Preconditioning, shape: tuple[int, ...], classes: int) -> list[str]:
    """Put preconditioners around a network's linear layers and convolutions; returns the names of these layers.

    Args:
        shape: of records (C, H, W).

    Raises:
        StudyError: the network has no layer that maps are known for.
    """
    layers = {name: layer for name, layer in network.named_modules() if _is_known(layer)}
    if not layers:
        raise StudyError("preconditioning: the network has no plain linear layer or convolution; leave it out")
    moments = _moments(network, layers, drawn(rule.pictures, shape), classes)
    for name in (chosen := [name for name in layers if name in moments]):
        inputs, outputs = moments[name]
        parent, _, attribute = name.rpartition(".")
        maps = _inverse_root(inputs, rule.damping), _inverse_root(outputs, rule.damping)
        setattr(network.get_submodule(parent), attribute, Preconditioned(layers[name], *maps))
    return chosen


def drawn(count: int, shape: tuple[int, ...]) -> torch.Tensor:
    """(count, C, H, W) images of fixed 1/f noise: amplitude falls with frequency; mean 0 and standard deviation 1."""
    generator = np.random.default_rng(0)
    height, width = shape[-2:]
    frequency = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None])
    frequency[0, 0] = np.inf  # removes the mean
    white = np.fft.rfft2(generator.standard_normal((count, *shape)))
    pictures = np.fft.irfft2(white / frequency, s=(height, width))
    spread = pictures.std() or 1.0  # an image of one pixel is zero, once its mean is removed
    return torch.from_numpy((pictures / spread).astype(np.float32))


def _is_known(layer: nn.Module) -> bool:
    if type(layer) is nn.Linear:
        return layer.weight.requires_grad
    if type(layer) is not nn.Conv2d:
        return False
    zeros = layer.padding_mode == "zeros" and not isinstance(layer.padding, str)
    return layer.groups == 1 and zeros and layer.weight.requires_grad


def _moments(
    network: nn.Module, layers: dict[str, nn.Module], pictures: torch.Tensor, classes: int
) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """Layer -> second moments (inputs, inputs) and (outputs, outputs), float64 sums, for layers that get a gradient."""
    kept: dict[str, torch.Tensor] = {}
    sums: dict[str, tuple[torch.Tensor, torch.Tensor]] = {}
    like = next(network.parameters())

    def before(name: str):
        def keep(layer, given, gives):
            kept[name] = _patches(layer, given[0].detach())
            gives.register_hook(lambda gradient: add(name, gradient))

        return keep

    def add(name: str, gradient: torch.Tensor) -> None:
        mapped = gradient.movedim(1, -1) if isinstance(layers[name], nn.Conv2d) else gradient
        outputs = mapped.flatten(0, -2).double()
        inputs = kept[name].double()
        both = inputs.T @ inputs, outputs.T @ outputs
        had = sums.get(name)
        sums[name] = both if had is None else (had[0] + both[0], had[1] + both[1])

    hooks = [layer.register_forward_hook(before(name)) for name, layer in layers.items()]
    try:
        trained = [value for value in network.parameters() if value.requires_grad]
        labels = torch.from_numpy(np.random.default_rng(1).integers(classes, size=len(pictures)))
        for block, targets in zip(pictures.split(_BLOCK), labels.split(_BLOCK), strict=True):
            with torch.enable_grad():
                loss = functional.cross_entropy(network(block.to(like)), targets.to(like.device), reduction="sum")
            torch.autograd.grad(loss, trained, allow_unused=True)
    finally:
        for hook in hooks:
            hook.remove()
    return sums


def _patches(layer: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """(rows, inputs) vectors that a layer's weight is multiplied with, one for each record and position."""
    if not isinstance(layer, nn.Conv2d):
        return x.flatten(0, -2)
    places: Any = layer.kernel_size, layer.dilation, layer.padding, layer.stride
    unfolded = functional.unfold(x, *places)
    return unfolded.movedim(1, -1).flatten(0, 1)


def _inverse_root(moments: torch.Tensor, damping: float) -> torch.Tensor:
    """(moments + damping)^-1/2, scaled so that squared eigenvalues average 1; the identity where moments are zero."""
    mean = float(moments.trace()) / len(moments)
    if not mean > 0:
        return torch.eye(len(moments), dtype=moments.dtype)
    values, vectors = torch.linalg.eigh(moments.cpu() / mean)
    roots = (values.clamp(min=0.0) + damping).rsqrt()
    roots = roots / roots.square().mean().sqrt()
    return (vectors * roots) @ vectors.T
