"""Processes that share one training (de2022, Algorithm 1): each sums the clipped gradients of its part of a batch.

The first process decides everything random: who is in a batch, how images are augmented, the start, and the noise,
which is added once, to the sum over all processes. Every process then takes the same noisy gradient, so that their
parameters stay equal, and equal to those of one process up to the rounding of sums.
"""

import contextlib
import datetime
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np
import torch
from torch import distributed

T = TypeVar("T")
_PATIENCE = datetime.timedelta(days=2)  # the others wait while the first evaluates or writes


class Ranks:
    """One process of a shared training, or the only one.

    Attributes:
        rank, size: which of how many.
    """

    def __init__(self, rank: int = 0, size: int = 1):
        self.rank, self.size = rank, size

    @property
    def first(self) -> bool:
        """Whether this process is the one that decides, draws noise, evaluates and writes."""
        return self.rank == 0

    def own(self, index: np.ndarray) -> np.ndarray:
        """(n,) whether each of the rows `index` is this process's: every size-th of all, starting at its rank."""
        return index % self.size == self.rank

    def agreed(self, value: T) -> T:
        """The first process's value, in every process."""
        if self.size == 1:
            return value
        box = [value]  # the first process's value replaces those of the others
        distributed.broadcast_object_list(box)
        return box[0]

    def summed(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """Sum tensors over processes, in place; only the first process may use them then."""
        self._exchanged(tensors, lambda flat: distributed.reduce(flat, 0))

    def totalled(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """Sum tensors over processes, in place, for every process."""
        self._exchanged(tensors, distributed.all_reduce)

    def same(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """Copy the first process's tensors to every process, in place."""
        self._exchanged(tensors, lambda flat: distributed.broadcast(flat, 0))

    @torch.no_grad()
    def _exchanged(self, tensors: Mapping[str, torch.Tensor], exchange: Callable[[torch.Tensor], object]) -> None:
        """Change tensors in place as one long one is changed by an operation over processes."""
        if self.size > 1:
            flat = torch.cat([value.flatten() for value in tensors.values()])
            exchange(flat)
            parts = flat.split([value.numel() for value in tensors.values()])
            for value, part in zip(tensors.values(), parts, strict=True):
                value.copy_(part.view_as(value))


class Dealt:
    """The rows of (features, labels) batches that are one process's, so that all together hold each record once.

    Attributes:
        rows: of the last pass, before they were dealt.
        nbytes: of its own features, about, where the batches say theirs.
    """

    def __init__(self, batches: Iterable, ranks: Ranks):
        self._batches: Any = batches
        self._ranks, self.rows = ranks, 0
        self.nbytes = getattr(batches, "nbytes", 0) / ranks.size

    def __iter__(self) -> Iterator[tuple[np.ndarray, ...]]:
        return self._own(self._batches)

    def counted(self) -> Iterator[tuple[np.ndarray, ...]]:
        """(features, labels, counts) batches; counts are how many records the person of each row has."""
        return self._own(self._batches.counted())

    def _own(self, batches: Iterable) -> Iterator[tuple[np.ndarray, ...]]:
        self.rows = 0
        for batch in batches:
            first = (self._ranks.rank - self.rows) % self._ranks.size
            self.rows += len(batch[0])
            yield tuple(each[first :: self._ranks.size] for each in batch)


def current() -> Ranks:
    """The rank of this process within `joined`; outside of it, that of a single process."""
    if not distributed.is_initialized():
        return Ranks()
    return Ranks(distributed.get_rank(), distributed.get_world_size())


@contextlib.contextmanager
def joined() -> Iterator[Ranks]:
    """Join the processes that torchrun started, a GPU each where there are enough."""
    local, enough = int(os.environ["LOCAL_RANK"]), torch.cuda.device_count() >= int(os.environ["LOCAL_WORLD_SIZE"])
    if enough:
        torch.cuda.set_device(local)
    distributed.init_process_group("nccl" if enough else "gloo", timeout=_PATIENCE)
    try:
        yield current()
    finally:
        distributed.destroy_process_group()
