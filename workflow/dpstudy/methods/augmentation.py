"""Data augmentation of images: random crops after mirror padding, and flips (de2022 section 3.1, appendix C.2).

Each picture is a function of its own record and of randomness that is drawn alike and independently for each, and as
secret as that of the batches: it goes by a record's place in its batch, so that whoever knew it would see one record
more change the others' copies. A record's copies stand together, so that their gradients can be averaged before the
record is clipped. Mixtures of two copies of one record (Bao et al. 2023, DP-MixSelf) are such pictures too.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from scipy.special import betaincinv

from dpstudy.core.errors import StudyError
from dpstudy.methods.checks import count
from dpstudy.privacy.secure_sampling import AnyGenerator
from dpstudy.schema.hyperparameters import Hyperparameters, setting


@dataclass(frozen=True, repr=False)
class Augmentation(Hyperparameters):
    """The parameters of data augmentation.

    Where nothing is augmented (evaluation), images are resized to the window: de2022 brings them at 1.2 times the size
    that the network takes.
    """

    multiplicity: int = setting(about="K, the copies of each record.", least=1)
    pad: int = setting(
        4, "Pixels by which each side is continued, mirrored at the edge, before a window is cut out.", least=0
    )
    flip: bool = setting(True, "Mirror half of the copies from left to right.")
    crop: tuple[int, int] | None = setting(
        None,
        "[height, width] of the window, the images' own size where absent; for evaluation they are resized to it.",
        schema={"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "integer", "minimum": 1}},
    )
    mixed: int = setting(
        0,
        "Mixtures of two copies of the record, beside its copies (DP-MixSelf, Bao et al. 2023); none where absent.",
        least=0,
        filled=False,
    )
    alpha: float = setting(
        0.2,
        "Of the beta distribution of the weights in a mixture, 0.2 where absent.",
        above=0,
        filled=False,
    )

    METHOD: ClassVar[str] = "augmentation"

    def __post_init__(self):
        super().__post_init__()
        if self.crop is not None:
            object.__setattr__(self, "crop", tuple(self.crop))
            count("augmentation", **{"crop height": self.crop[0], "crop width": self.crop[1]})
        if self.mixed and self.multiplicity < 2:
            raise StudyError(f"augmentation: mixed {self.mixed}: mixtures need a multiplicity of 2")

    def __repr__(self) -> str:
        """The text that keys the noise of `fit`; without mixtures it is that of versions that had no mixtures."""
        keys = ["multiplicity", "pad", "flip", "crop", *(["mixed", "alpha"] if self.mixed else [])]
        return f"Augmentation({', '.join(f'{name}={getattr(self, name)!r}' for name in keys)})"

    @property
    def copies(self) -> int:
        """The number of augmented copies of each record, over which its gradients are averaged."""
        return self.multiplicity + self.mixed

    def check(self, shape: tuple[int, ...]) -> None:
        """Refuse records of a shape that cannot be augmented.

        Raises:
            StudyError: they are no images, or too small.
        """
        if len(shape) != 3:
            raise StudyError(f"augmentation: needs images of layout (C, H, W), not features {tuple(shape)}")
        if self.pad > min(shape[1:]):
            raise StudyError(f"augmentation: pad {self.pad} exceeds the images of {shape[1]}x{shape[2]}")
        if self.crop and min(room := self._room(shape)) < 0:
            raise StudyError(
                f"augmentation: crop {self.crop} exceeds the images of {shape[1]}x{shape[2]} by {-min(room)}"
            )

    def window(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """(C, h, w), the shape of the crops that the network gets, for images of shape (C, H, W)."""
        return (shape[0], *(self.crop or shape[1:]))

    def _room(self, shape: tuple[int, ...]) -> list[int]:
        """The largest vertical and horizontal offset of a crop, in pixels."""
        return [side + 2 * self.pad - cut for side, cut in zip(shape[1:], self.window(shape)[1:], strict=True)]

    def choose(self, records: int, shape: tuple[int, ...], generator: AnyGenerator) -> torch.Tensor:
        """(records, K, 3) random offsets (down, across) and flips of each record's K crops, for (C, H, W) images.

        With mixtures (records, K + mixed, 3), of which the last hold the two copies to mix and the weight of the first.
        """
        room = np.array(self._room(shape)) + 1
        places = generator.integers(room, size=(records, self.multiplicity, 2))
        flips = generator.integers(1 + self.flip, size=(records, self.multiplicity, 1))
        copies = np.concatenate([places, flips], 2)
        return torch.from_numpy(
            np.concatenate([copies, self._mixtures(records, generator)], 1) if self.mixed else copies
        )

    def _mixtures(self, records: int, generator: AnyGenerator) -> np.ndarray:
        first = generator.integers(self.multiplicity, size=(records, self.mixed))
        apart = generator.integers(1, self.multiplicity, size=(records, self.mixed))
        weights = betaincinv(self.alpha, self.alpha, generator.random((records, self.mixed)))
        return np.stack([first, (first + apart) % self.multiplicity, weights], 2)

    def __call__(self, images: torch.Tensor, choices: torch.Tensor) -> torch.Tensor:
        """(n copies, C, h, w) augmented copies, channels-last in memory, of images (n, C, H, W) by random `choices`."""
        choices = choices.to(images.device)
        windows = self._cut(images, choices[:, : self.multiplicity].long())
        if not self.mixed:
            return windows.flatten(0, 1).permute(0, 3, 1, 2)
        first, second, weights = choices[:, self.multiplicity :].unbind(2)
        record = torch.arange(len(images), device=images.device)[:, None]
        weights = weights.to(windows.dtype)[:, :, None, None, None]
        both = windows[record, first.long()] * weights + windows[record, second.long()] * (1 - weights)
        return torch.cat([windows, both], 1).flatten(0, 1).permute(0, 3, 1, 2)

    def _cut(self, images: torch.Tensor, choices: torch.Tensor) -> torch.Tensor:
        """(n, K, h, w, C) crops of the images, flipped where `choices` says so."""
        _, *window = self.window(images.shape[1:])
        down, across, flipped = choices.flatten(0, 1).unbind(1)
        rows, columns = (
            _mirrored(torch.arange(cut, device=images.device) + first[:, None] - self.pad, side)
            for cut, first, side in zip(window, (down, across), images.shape[2:], strict=True)
        )
        columns = torch.where(flipped[:, None] > 0, columns.flip(1), columns)
        record = torch.arange(len(images), device=images.device).repeat_interleave(self.multiplicity)
        pictures = images.permute(0, 2, 3, 1)[record[:, None, None], rows[:, :, None], columns[:, None, :]]
        return pictures.unflatten(0, (len(images), self.multiplicity))


def _mirrored(places: torch.Tensor, size: int) -> torch.Tensor:
    """Pixel indices reflected into 0..size-1 from at most `size` beyond an edge; the edge pixel is repeated."""
    places = torch.where(places < 0, -1 - places, places)
    return torch.where(places >= size, 2 * size - 1 - places, places)
