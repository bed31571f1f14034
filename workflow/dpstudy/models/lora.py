"""Low-rank adaptation (Hu et al. 2022): W + B A in the place of a linear layer's W, of which A and B are trained."""

import math
from collections.abc import Mapping

import torch
from torch import nn


class LowRank(nn.Module):
    """x -> base(x) + up(down(x)), `down` (r, inputs) drawn by torch's global generator, `up` (outputs, r) zero at
    first.

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
        """What acts: networks whose code takes a layer's weight, and does not call it, are given this."""
        return self.base.weight + self.up.weight @ self.down.weight

    @property
    def bias(self) -> torch.Tensor | None:
        """The layer's."""
        return self.base.bias

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(n, ..., inputs) to (n, ..., outputs)."""
        return self.base(x) + self.up(self.down(x))


def adapt(network: nn.Module, rank: int, but: str) -> list[str]:
    """Put low-rank layers in the place of a network's linear ones, but for those of the module `but`; their names."""
    found = {
        name: layer
        for name, layer in network.named_modules()
        if type(layer) is nn.Linear and not f"{name}.".startswith(f"{but}.")
    }
    for name, layer in found.items():
        parent, _, own = name.rpartition(".")
        setattr(network.get_submodule(parent), own, LowRank(layer, rank))
    return list(found)


def merged(values: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Parameters of the network without low-rank layers, from those of the one with them."""
    found: dict[str, torch.Tensor] = {}
    for name, value in values.items():
        layer, _, end = name.rpartition(".base.")
        if not layer or f"{layer}.up.weight" not in values:
            found[name] = value
        elif end == "weight":
            found[f"{layer}.weight"] = value + values[f"{layer}.up.weight"] @ values[f"{layer}.down.weight"]
        else:
            found[f"{layer}.{end}"] = value
    return {
        name: value
        for name, value in found.items()
        if not any(
            name.endswith(f".{part}.weight") and f"{name.removesuffix(f'{part}.weight')}base.weight" in values
            for part in ("up", "down")
        )
    }
