"""Objectives of pre-training: cross-entropy with optional Mixup, and SimCLR's contrastive loss."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional

_PROJECTED = 128  # SimCLR's width of what is contrasted (Chen et al. 2020, section 2.1)


def mixed(
    pictures: torch.Tensor, labels: torch.Tensor, classes: int, alpha: float, seeds: np.random.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Images and one-hot labels after Mixup (Zhang et al. 2017), each mixed with the next row.

    The share, one for the whole batch, is drawn from Beta(alpha, alpha).

    Returns:
        pictures (n, C, H, W) and labels (n, classes).
    """
    share = float(seeds.beta(alpha, alpha))
    soft = functional.one_hot(labels, classes).to(pictures.dtype)
    seen, targets = (share * values + (1 - share) * values.roll(1, 0) for values in (pictures, soft))
    return seen, targets


class Projected(nn.Module):
    """A network without its classifier, and SimCLR's projection head of two layers, which is discarded later."""

    def __init__(self, body: nn.Module, dim: int):
        super().__init__()
        self.body = body
        self.head = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, _PROJECTED))

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        """The projections (n, 128) of images (n, C, H, W)."""
        return self.head(self.body(pictures))


def contrast(projected: torch.Tensor, temperature: float) -> torch.Tensor:
    """The NT-Xent loss (Chen et al. 2020, Eq. 1), averaged over 2 n images; the partner of each is n rows away.

    Args:
        projected: (2 n, dim), in any scale.
    """
    unit = functional.normalize(projected.float(), dim=1)
    alike = unit @ unit.T / temperature
    alike = alike.masked_fill(torch.eye(len(unit), dtype=torch.bool, device=unit.device), float("-inf"))
    partners = torch.arange(len(unit), device=unit.device).roll(len(unit) // 2)
    return functional.cross_entropy(alike, partners)
