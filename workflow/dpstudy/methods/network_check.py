"""Whether the engine knows what a foreign network computes: per-record gradients against plain backward passes."""

import copy
import math

import torch
from torch import nn

from dpstudy.errors import StudyError
from dpstudy.methods.record_gradients import RecordGradients, record_losses

_RECORDS, _COPIES, _TOLERANCE = 2, 2, 1e-6
_MOVED = 0.05  # how far parameters are moved first: a branch whose gain starts at 0 would hide what is in it


def check_network(name: str, network: nn.Module, shape: tuple[int, ...], classes: int) -> None:
    """Compare each record's gradient, as the engine has it beside another record, with that of the record alone.

    On random images, in float64: no private record is touched.

    Raises:
        StudyError: they differ (records are mixed, or some layer is not what its rule takes it for), a pass changes
            the network's state, or a layer is refused.
    """
    network = copy.deepcopy(network).double()
    random = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for value in network.parameters():
            value.add_(_MOVED * torch.randn(value.shape, generator=random, dtype=torch.float64))
    records = torch.randn(_RECORDS * _COPIES, *shape, generator=random, dtype=torch.float64)
    labels = torch.arange(_RECORDS) % classes
    engine = RecordGradients(network)
    before = {key: value.clone() for key, value in network.named_buffers()}
    for index in range(_RECORDS):
        part = torch.arange(_RECORDS) == index
        found = engine.clipped_sum(records, labels, "softmax", math.inf, _COPIES, part)
        own = records[index * _COPIES : (index + 1) * _COPIES]
        loss = record_losses(network(own), labels[index].expand(_COPIES), "softmax").mean()
        alone = torch.autograd.grad(loss, [dict(network.named_parameters())[key] for key in found], allow_unused=True)
        _compare(name, found, {key: value for key, value in zip(found, alone, strict=True) if value is not None})
    changed = [key for key, value in network.named_buffers() if not torch.equal(value, before[key])]
    if changed:
        raise StudyError(f"network {name!r}: a pass changes its state {changed[0]!r}, outside the ledger")


def _compare(name: str, found: dict, alone: dict) -> None:
    scale = max(float(value.abs().max()) for value in alone.values())
    for key, value in found.items():
        if key not in alone or float((value - alone[key]).abs().max()) > _TOLERANCE * scale:
            raise StudyError(
                f"network {name!r}: the gradient of one record with respect to {key!r} is not what it is without other "
                "records, so that it cannot be bounded; choose another network"
            )
