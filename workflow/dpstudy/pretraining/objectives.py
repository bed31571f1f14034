"""What pre-training makes small: cross-entropy on labels, with Mixup where asked for, or SimCLR's contrast."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional

_PROJECTED = 128  # SimCLR's width of what is contrasted (Chen et al. 2020, section 2.1)


def mixed(
    pictures: torch.Tensor, labels: torch.Tensor, classes: int, alpha: float, seeds: np.random.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Mixup (Zhang et al. 2017): every picture and its label, one-hot, are mixed with the next one's.

    The share, one for the whole batch, is drawn from Beta(alpha, alpha).

    Returns:
        pictures (n, C, H, W) and labels (n, classes).
    """
    share = float(seeds.beta(alpha, alpha))
    soft = functional.one_hot(labels, classes).to(pictures.dtype)
    seen, said = (share * values + (1 - share) * values.roll(1, 0) for values in (pictures, soft))
    return seen, said


class Projected(nn.Module):
    """A network without classifier, and the two layers behind it that SimCLR contrasts and then throws away."""

    def __init__(self, body: nn.Module, dim: int):
        super().__init__()
        self.body = body
        self.head = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, _PROJECTED))

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        """(n, C, H, W) to (n, 128)."""
        return self.head(self.body(pictures))


def contrast(projected: torch.Tensor, temperature: float) -> torch.Tensor:
    """NT-Xent (Chen et al. 2020, Eq. 1), averaged over 2 n pictures: each one's partner stands n rows away.

    Args:
        projected: (2 n, dim), in any scale.
    """
    unit = functional.normalize(projected.float(), dim=1)
    alike = unit @ unit.T / temperature
    alike = alike.masked_fill(torch.eye(len(unit), dtype=torch.bool, device=unit.device), float("-inf"))
    partners = torch.arange(len(unit), device=unit.device).roll(len(unit) // 2)
    return functional.cross_entropy(alike, partners)
