"""The scattering transform of scattering.py in NumPy alone: slower, and equal to it up to float32 rounding.

For bundles, whose receiver may have no torch.
"""

import numpy as np

from dpstudy.features.scatter_filters import Filters

_BLOCK = 8  # maps at a time


class NumpyScattering:
    """The scattering coefficients (n, 81, H // 4, W // 4) of maps (n, H, W), for one size of map."""

    def __init__(self, filters: Filters):
        left, right, above, below = filters.pad
        self._pad = ((0, 0), (above, below), (left, right))
        self._fine, self._low = filters.fine, filters.low
        self._coarse = [quarter / 4 for quarter in _quarters(filters.coarse)]

    def __call__(self, maps: np.ndarray) -> np.ndarray:
        """(n, 81, H // 4, W // 4) float32 of (n, H, W) float32."""
        blocks = range(0, len(maps), _BLOCK)
        return np.concatenate([self._block(maps[start : start + _BLOCK]) for start in blocks])

    def _block(self, maps: np.ndarray) -> np.ndarray:
        x = np.pad(maps, self._pad, mode="reflect")
        spectrum = np.fft.fft2(x)
        zeroth = self._smooth(x, 0)[:, None]
        fine = _modulus(spectrum[:, None] * self._fine)  # (n, 8, H', W')
        coarse = _modulus(self._halved(spectrum))
        second = _modulus(self._halved(np.fft.fft2(fine)))
        smooth = self._smooth(second, 1)
        parts = (zeroth, self._smooth(fine, 0), self._smooth(coarse, 1), smooth.reshape(len(x), -1, *smooth.shape[3:]))
        return np.concatenate(parts, 1).astype(np.float32)

    def _halved(self, spectrum: np.ndarray) -> np.ndarray:
        """(..., H, W) filtered by each angle, then every other value kept along both axes: (..., 8, H/2, W/2)."""
        quarters = _quarters(spectrum[..., None, :, :])
        return np.sum([quarter * psi for quarter, psi in zip(quarters, self._coarse, strict=True)], axis=0)

    def _smooth(self, maps: np.ndarray, scale: int) -> np.ndarray:
        rows, columns = self._low[scale]
        return rows @ maps @ columns


def _quarters(spectrum: np.ndarray) -> list[np.ndarray]:
    """The four (..., H/2, W/2) quarters that keeping every other value folds onto each other."""
    return [part for half in np.split(spectrum, 2, -2) for part in np.split(half, 2, -1)]


def _modulus(spectrum: np.ndarray) -> np.ndarray:
    return np.abs(np.fft.ifft2(spectrum)).astype(np.float32)
