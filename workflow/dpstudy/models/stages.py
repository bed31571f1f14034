"""Pooled features from a network's intermediate stages, at other scales than its classifier's input."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from dpstudy.core.errors import StudyError


class Stages(nn.Module):
    """Spatial means of the maps of some stages of a timm network, concatenated: (n, d)."""

    def __init__(self, network: nn.Module, layers: Sequence[int]):
        super().__init__()
        self.network, self.layers = network, list(layers)

    def forward(self, planes: Tensor) -> Tensor:
        """The features (n, d) of images (n, C, h, w)."""
        maps = self.network.forward_intermediates(  # type: ignore[operator]  # torch calls what it knows nothing of a tensor
            planes, indices=self.layers, stop_early=True, output_fmt="NCHW", intermediates_only=True
        )
        return torch.cat([each.mean((2, 3)) for each in maps], 1)


def stages(network: nn.Module, layers: Sequence[int], name: str) -> Stages:
    """The `Stages` of a network, after checking that it has them.

    Raises:
        StudyError: the network does not tell its stages, or has not so many.
    """
    if not hasattr(network, "forward_intermediates"):
        raise StudyError(f"{name} does not tell what its stages give; leave out `layers`")
    known = len(network.feature_info)  # type: ignore[arg-type]
    if max(layers) >= known:
        raise StudyError(f"{name} has the stages 0 to {known - 1}; mend `layers`")
    return Stages(network, sorted(set(layers)))
