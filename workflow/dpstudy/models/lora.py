"""Low-rank adaptation (Hu et al. 2022): a linear layer's W becomes W + B A, of which only A and B are trained."""

import math
from collections.abc import Mapping

import torch
from torch import nn


class LowRank(nn.Module):
    """A linear layer with a trained low-rank term: x -> base(x) + up(down(x)).

    `down` (r, inputs) is drawn by torch's global generator, `up` (outputs, r) starts at zero.

    Args:
        base: a linear layer.
        rank: r.
    """

    def __init__(self, base: nn.Linear, rank: int):
        super().__init__()
        self.base = base
        self.down = nn.Linear(base.in_features, rank, bias=False)
        self.up = nn.Linear(rank, base.out_features, bias=False)
        nn.init.kaiming_uniform_(self.down.weight, a=math.sqrt(5))
        nn.init.zeros_(self.up.weight)

    @property
    def weight(self) -> torch.Tensor:
        """The effective weight, for networks that read a layer's weight rather than call the layer."""
        return self.base.weight + self.up.weight @ self.down.weight

    @property
    def bias(self) -> torch.Tensor | None:
        """The bias of the base layer."""
        return self.base.bias

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The outputs (n, ..., outputs) of inputs (n, ..., inputs)."""
        return self.base(x) + self.up(self.down(x))


def adapt(network: nn.Module, rank: int, but: str) -> list[str]:
    """Replace a network's linear layers, except those of the module `but`, by low-rank ones; returns their names."""
    layers = {
        name: layer
        for name, layer in network.named_modules()
        if type(layer) is nn.Linear and not f"{name}.".startswith(f"{but}.")
    }
    for name, layer in layers.items():
        parent, _, attribute = name.rpartition(".")
        setattr(network.get_submodule(parent), attribute, LowRank(layer, rank))
    return list(layers)


def merged(values: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The parameters of the network without low-rank layers that equals one with them."""
    folded: dict[str, torch.Tensor] = {}
    for name, value in values.items():
        layer, _, end = name.rpartition(".base.")
        if not layer or f"{layer}.up.weight" not in values:
            folded[name] = value
        elif end == "weight":
            folded[f"{layer}.weight"] = value + values[f"{layer}.up.weight"] @ values[f"{layer}.down.weight"]
        else:
            folded[f"{layer}.{end}"] = value
    return {
        name: value
        for name, value in folded.items()
        if not any(
            name.endswith(f".{part}.weight") and f"{name.removesuffix(f'{part}.weight')}base.weight" in values
            for part in ("up", "down")
        )
    }
