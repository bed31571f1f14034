"""Releases of sums that are held as tensors."""

import torch

from dpstudy.privacy.noise import NoiseSource


def released_tensor(
    source: NoiseSource, name: str, query: torch.Tensor, std: float, step: int = 0, tensor: str = ""
) -> torch.Tensor:
    """A private sum with noise; see `NoiseSource.released`. What comes back lies where the sum was."""
    return torch.from_numpy(source.released(name, query.cpu().numpy(), std, step, tensor)).to(query.device)
