"""Private releases of sums that may be torch tensors."""

from __future__ import annotations

from dpstudy.core.arrays import Array, place_of, to_numpy
from dpstudy.privacy.noise import NoiseSource


def released_array(source: NoiseSource, name: str, query: Array, std: float, step: int = 0, tensor: str = "") -> Array:
    """A private sum with noise, in float32, on the device of the sum; see `NoiseSource.released`."""
    return place_of(query).array(source.released(name, to_numpy(query), std, step, tensor), "float32")
