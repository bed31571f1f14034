"""Sums of clipped gradients, computed record by record: for networks of which nothing is known.

Each record's gradient is that of a pass of its copies alone, by plain automatic differentiation, through a copy of the
network that shares its parameters and nothing else. So no operation and no state of the network's code (but what it
keeps outside of the network, or draws at random) joins records, whatever layers and parameters it has, and a record's
gradient does not depend on the others in a single bit. A pass a record is slow: times are in docs/networks.md.
"""

import copy
import math

import torch
from torch import nn

from dpstudy.methods.bounds import hold
from dpstudy.methods.network_memory import LARGEST_IMAGES
from dpstudy.methods.network_refusals import check_layers, check_scores, failures_of
from dpstudy.methods.record_gradients import record_losses, zeros
from dpstudy.methods.record_sums import clipping_factors, squared_lengths


class OneByOne:
    """Clipped gradient sums with the interface of RecordGradients, slowly.

    Args:
        network, precision, name: as there.

    Raises:
        StudyError: a layer mixes records (batch normalisation), draws at random or keeps statistics.
    """

    def __init__(self, network: nn.Module, precision: str = "float32", name: str = ""):
        check_layers(network)
        self._network, self._precision, self._name = network, precision, name

    def micro_batch(self, record: torch.Tensor) -> int:
        """The number of records to bring to the device at a time, given one record's (K, ...) copies."""
        return max(1, LARGEST_IMAGES // len(record))

    def clipped_sum(
        self,
        records: torch.Tensor,
        labels: torch.Tensor,
        loss: str,
        norm: float,
        copies: int = 1,
        part: torch.Tensor | None = None,
    ) -> dict[str, torch.Tensor]:
        """See `RecordGradients.clipped_sum`."""
        total = zeros(self._network)
        for index, rows in enumerate(records.split(copies)):
            share = 1.0 if part is None else float(part[index])
            if not share:
                continue
            gradients = self._gradients(rows, labels[index : index + 1].repeat_interleave(copies, 0), loss, list(total))
            squares = torch.stack([squared_lengths(value.flatten()) for value in gradients.values()]).sum()
            factor = share * float(clipping_factors(squares.sqrt()[None], norm)[0])
            if not factor:
                continue  # 0 x NaN is NaN
            for name, value in gradients.items():
                total[name].add_(value, alpha=factor)
            if math.isfinite(norm) and index == 0:
                length = torch.stack([value.double().square().sum() for value in gradients.values()]).sum().sqrt()
                hold("clipped gradients of a network", factor * length[None], norm)
        return total

    def _gradients(self, own: torch.Tensor, labels: torch.Tensor, loss: str, names: list[str]) -> dict:
        """Parameter -> gradient of one record, for the parameters that have one."""
        values = dict(self._network.named_parameters())
        with failures_of(self._name):
            network = separate_copy(self._network)
            with torch.autocast(own.device.type, torch.bfloat16, enabled=self._precision == "bfloat16"):
                scores = network(own)
            check_scores(scores, own, self._name)
            value = record_losses(scores.to(own.dtype), labels, loss).mean()
            gradients = torch.autograd.grad(value, [values[name] for name in names], allow_unused=True)
        return {name: gradient for name, gradient in zip(names, gradients, strict=True) if gradient is not None}


def separate_copy(network: nn.Module) -> nn.Module:
    """A copy that shares only the network's parameters, so that any state that a record leaves stays in the copy."""
    return copy.deepcopy(network, {id(value): value for value in network.parameters()})
