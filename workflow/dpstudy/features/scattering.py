"""A fast scattering transform of depth 2 with J = 2, equal to kymatio's up to float32 rounding.

kymatio filters one map after the other in complex arithmetic. Here all angles of a scale are one batch, small blocks of
images stay in cache, and what follows each modulus, the low-pass filter and its subsampling by up to 4, is two small
real matrices: the filter is a Gaussian, hence separable, and only every fourth value of the result is kept. The filters
are kymatio's own (Bruna and Mallat 2013; Andreux et al. 2020).
"""

import torch

from dpstudy.features.scatter_filters import Filters

_BLOCK = 8  # maps at a time, which stay in cache


class Scattering:
    """The scattering coefficients (n, 81, H // 4, W // 4) of maps (n, H, W), for one size of map."""

    def __init__(self, filters: Filters):
        self._pad = filters.pad
        # each value twice, for the real and the imaginary part
        both = (torch.from_numpy(part)[..., None].repeat(1, 1, 1, 2) for part in (filters.fine, filters.coarse))
        self._fine, coarse = both
        self._coarse = [quarter.contiguous() / 4 for quarter in _quarters(coarse)]
        self._low = [(torch.from_numpy(rows), torch.from_numpy(columns.T.copy())) for rows, columns in filters.low]

    def __call__(self, maps: torch.Tensor) -> torch.Tensor:
        """(n, 81, H // 4, W // 4) float32 of (n, H, W) float32."""
        with torch.inference_mode():
            filled = torch.nn.functional.pad(maps, (0, 0, 0, 0, 0, -len(maps) % _BLOCK))  # one shape: one rounding
            return torch.cat([self._block(part) for part in filled.split(_BLOCK)])[: len(maps)]

    def _block(self, maps: torch.Tensor) -> torch.Tensor:
        x = torch.nn.functional.pad(maps[:, None], self._pad, mode="reflect")[:, 0]
        spectrum = _spectrum(x)
        zeroth = self._smooth(x, 0)[:, None]
        fine = _modulus(spectrum[:, None] * self._fine)  # (n, 8, H', W')
        coarse = _modulus(self._halved(spectrum))
        second = _modulus(self._halved(_spectrum(fine)))
        parts = (zeroth, self._smooth(fine, 0), self._smooth(coarse, 1), self._smooth(second, 1).flatten(1, 2))
        return torch.cat(parts, 1)

    def _halved(self, spectrum: torch.Tensor) -> torch.Tensor:
        """(..., H, W, 2) filtered by each angle, then every other value kept along both axes: (..., 8, H/2, W/2, 2)."""
        first, *others = zip(_quarters(spectrum[..., None, :, :, :]), self._coarse, strict=True)
        total = first[0] * first[1]
        for quarter, psi in others:
            total.addcmul_(quarter, psi)
        return total

    def _smooth(self, maps: torch.Tensor, scale: int) -> torch.Tensor:
        rows, columns = self._low[scale]
        # one tall product, then another: of a product a map the rounding depends on where in memory the map lies
        half = torch.nn.functional.linear(maps, columns).mT.contiguous()
        return torch.nn.functional.linear(half, rows).mT


def _spectrum(maps: torch.Tensor) -> torch.Tensor:
    """(..., H, W, 2) of real maps."""
    return torch.view_as_real(torch.fft.fft2(maps))


def _quarters(spectrum: torch.Tensor) -> list[torch.Tensor]:
    """The four (..., H/2, W/2, 2) quarters that keeping every other value folds onto each other."""
    height, width = spectrum.shape[-3] // 2, spectrum.shape[-2] // 2
    return [part for half in spectrum.split(height, -3) for part in half.split(width, -2)]


def _modulus(spectrum: torch.Tensor) -> torch.Tensor:
    maps = torch.view_as_real(torch.fft.ifft2(torch.view_as_complex(spectrum)))
    real, imaginary = maps[..., 0], maps[..., 1]
    return torch.addcmul(real.square(), imaginary, imaginary).sqrt_()  # abs() guards against overflow, slowly
