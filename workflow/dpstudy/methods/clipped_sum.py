"""A private sum of contributions that are clipped to one norm, which its ledger entry is computed from."""

import math
from dataclasses import dataclass

from dpstudy.privacy.events import Event


@dataclass(frozen=True)
class ClippedSum:
    """A sum to which each record adds a vector of at most `norm`.

    Attributes:
        norm: Euclidean.
        records: how many records of a unit count.
        clipped: False only in controls, where nothing is clipped and nothing is noised.
    """

    norm: float
    records: int = 1
    clipped: bool = True

    @property
    def clip(self) -> float:
        """What contributions are clipped to; infinite where nothing is clipped."""
        return self.norm if self.clipped else math.inf

    def sensitivity(self, adjacency: str = "add-remove-one") -> float:
        """By how much one unit moves the sum; to replace one is to remove it and to add another.

        >>> ClippedSum(0.5, records=3).sensitivity(), ClippedSum(0.5, records=3).sensitivity("replace-one")
        (1.5, 3.0)
        """
        return (2 if adjacency == "replace-one" else 1) * float(self.records * self.norm)

    def times(self, factor: float) -> "ClippedSum":
        """A sum of what has at most `factor` times a contribution's length, as its product with a bounded vector."""
        return ClippedSum(self.norm * factor, self.records, self.clipped)

    @property
    def products(self) -> "ClippedSum":
        """A sum of the outer products of contributions with themselves."""
        return ClippedSum(self.norm**2, self.records, self.clipped)

    def event(self, name: str, noise_multiplier: float, count: int = 1, **sampling) -> Event:
        """Its release with Gaussian noise; `sampling` as of Event."""
        return Event(name, "gaussian", noise_multiplier, self.sensitivity(), count, **sampling)
