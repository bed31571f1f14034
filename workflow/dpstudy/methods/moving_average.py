"""Exponential moving averages of a network's weights."""

from collections.abc import Mapping

import torch


class MovingAverage:
    """Exponential moving averages of tensors, with the warm-up min(decay, (1 + t)/(10 + t)) after t steps.

    Post-processing, as in de2022 (section 3.4 and released code).

    Attributes:
        mean: name -> average.
        count: steps so far.
    """

    def __init__(self, decay: float, values: Mapping[str, torch.Tensor]):
        self._decay, self.count = decay, 0
        self.mean = {name: value.detach().clone() for name, value in values.items()}

    def add(self, values: Mapping[str, torch.Tensor]) -> None:
        """Update the averages with the iterate after one more step."""
        keep = min(self._decay, (1 + self.count) / (10 + self.count))
        self.count += 1
        for name, value in values.items():
            self.mean[name].lerp_(value.detach(), 1 - keep)
