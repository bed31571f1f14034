"""A private sum of contributions clipped to one norm, from which its ledger entry is computed."""

import math
from dataclasses import dataclass

from dpstudy.privacy.events import Event


@dataclass(frozen=True)
class ClippedSum:
    """A sum to which each record adds a vector of Euclidean norm at most `norm`.

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
        """The clipping norm of contributions; infinite where nothing is clipped."""
        return self.norm if self.clipped else math.inf

    def sensitivity(self, adjacency: str = "add-remove-one") -> float:
        """The sensitivity: how far one unit moves the sum; to replace a unit is to remove it and to add another.

        >>> ClippedSum(0.5, records=3).sensitivity(), ClippedSum(0.5, records=3).sensitivity("replace-one")
        (1.5, 3.0)
        """
        return (2 if adjacency == "replace-one" else 1) * float(self.records * self.norm)

    def times(self, factor: float) -> "ClippedSum":
        """A sum whose contributions have at most `factor` times this norm, such as products with a bounded vector."""
        return ClippedSum(self.norm * factor, self.records, self.clipped)

    @property
    def products(self) -> "ClippedSum":
        """The sum of the outer products of contributions with themselves."""
        return ClippedSum(self.norm**2, self.records, self.clipped)

    def event(self, name: str, noise_multiplier: float, count: int = 1, **sampling) -> Event:
        """The ledger event of its release with Gaussian noise; `sampling` holds further fields of Event."""
        return Event(name, "gaussian", noise_multiplier, self.sensitivity(), count, **sampling)
