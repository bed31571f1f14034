"""The filters of a scattering transform of depth 2 with J = 2, for one image size: from kymatio or from a file.

Bundles have them as a file, so that whoever gets one needs neither kymatio nor torch.
"""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dpstudy.core.files import read_tensors, write_tensors

SCALES, ANGLES = 2, 8  # J and L
CHANNELS = 1 + SCALES * ANGLES + SCALES * (SCALES - 1) // 2 * ANGLES**2  # 81
FILE = "scattering.safetensors"


@dataclass(frozen=True)
class Filters:
    """The filters as float32 arrays; H and W are the padded height and width.

    Attributes:
        size: (height, width) of the maps.
        pad: columns left and right, rows above and below, by which maps are continued, mirrored.
        fine, coarse: (8, H, W) real spectra of the wavelets of both scales.
        low: of each scale, (h, H) and (W, w), which smooth a map, keep every fourth or second value, and drop the
            margin.
    """

    size: tuple[int, int]
    pad: tuple[int, int, int, int]
    fine: np.ndarray
    coarse: np.ndarray
    low: tuple[tuple[np.ndarray, np.ndarray], ...]

    @classmethod
    def of(cls, height: int, width: int) -> "Filters":
        """kymatio's filters for maps of this size.

        Raises:
            ValueError: the low-pass filter is not separable (never, for kymatio's Gaussian).
        """
        from kymatio.scattering2d.filter_bank import filter_bank
        from kymatio.scattering2d.utils import compute_padding

        padded = compute_padding(height, width, SCALES)
        left, right = _sides(padded[1] - width)
        above, below = _sides(padded[0] - height)
        bank = filter_bank(*padded, SCALES, ANGLES)
        first = [[psi["levels"][0] for psi in bank["psi"] if psi["j"] == scale] for scale in range(SCALES)]
        fine, coarse = (np.stack(part).astype(np.float32) for part in first)
        low = tuple(_low_pass(level, 2 ** (SCALES - scale)) for scale, level in enumerate(bank["phi"]["levels"]))
        return cls((height, width), (left, right, above, below), fine, coarse, low)

    @classmethod
    def read(cls, folder: str | os.PathLike) -> "Filters":
        """The filters in a folder's file.

        Raises:
            StudyError: the file is missing or damaged.
        """
        tensors = read_tensors(Path(folder) / FILE)
        pairs = tuple((tensors[f"rows_{scale}"], tensors[f"columns_{scale}"]) for scale in range(SCALES))
        sizes = [int(value) for value in tensors["size"]]
        pad = [int(value) for value in tensors["pad"]]
        return cls((sizes[0], sizes[1]), (pad[0], pad[1], pad[2], pad[3]), tensors["fine"], tensors["coarse"], pairs)

    def write(self, folder: str | os.PathLike) -> None:
        """Write the filters to the file that `read` reads."""
        pairs: dict[str, np.ndarray] = {}
        for scale, (rows, columns) in enumerate(self.low):
            pairs |= {f"rows_{scale}": rows, f"columns_{scale}": columns}
        numbers = {"size": np.array(self.size, np.int32), "pad": np.array(self.pad, np.int32)}
        write_tensors(Path(folder) / FILE, {"fine": self.fine, "coarse": self.coarse, **numbers, **pairs})


def _sides(extra: int) -> tuple[int, int]:
    return extra // 2, extra - extra // 2


def _low_pass(spectrum: np.ndarray, step: int) -> tuple[np.ndarray, np.ndarray]:
    """(h, H) and (W, w): filter with a separable real spectrum (H, W), keep every `step`-th value, drop the margin."""
    left, values, right = np.linalg.svd(spectrum)
    if values[1] > 1e-6 * values[0]:
        raise ValueError("the low-pass filter is not separable")
    root = np.sqrt(values[0])
    return _circulant(left[:, 0] * root, step), np.ascontiguousarray(_circulant(right[0] * root, step).T)


def _circulant(spectrum: np.ndarray, step: int) -> np.ndarray:
    kernel = np.fft.ifft(spectrum).real
    size = len(kernel)
    places = np.arange(0, size, step)[1:-1]
    return kernel[(places[:, None] - np.arange(size)) % size].astype(np.float32)
