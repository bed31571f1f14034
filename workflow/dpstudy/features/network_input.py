"""What a network gets of images: resized, its middle cut out, scaled, in as many channels as it takes; and its run."""

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.features import backends
from dpstudy.features.blocks import in_blocks
from dpstudy.features.scaling import standardised

_PIXELS = {"cpu": 2**16, "cuda": 2**21}  # network inputs at once; another size rounds otherwise


class NetworkInput:
    """A network in evaluation mode with what stands before it.

    Args:
        network: planes (n, C, h, w) to (n, d).
        channels: C that it takes.
        scaling: a name of features.scaling, or the means and the standard deviations of the channels.
        size: (H, W) that images are resized to; None: as they are.
        crop: (h, w) of the middle that is then taken; None: all.
        name: of the network, for messages.
        backend: auto, or what runs the network (features.backends).
        mirror: average the features of an image and its mirror image.

    Attributes:
        network: on the device where it runs.
        backend: what ran it last, with its version; None before.
    """

    def __init__(
        self,
        network,
        channels: int,
        scaling,
        size=None,
        crop=None,
        name: str = "",
        backend: str = backends.AUTO,
        mirror: bool = False,
    ):
        import torch

        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.network = network.eval().requires_grad_(False).to(self._device)
        self._channels, self._scaling, self._name = channels, scaling, name
        self._size, self._crop = size and tuple(size), crop and tuple(crop)
        self._wanted, self._mirror = backend, mirror
        self._runners: dict[tuple, tuple[str, backends.Run]] = {}
        self.backend: str | None = None

    def shape(self, image_shape: tuple[int, int, int]) -> tuple[int]:
        """(d,), found by a run on a black image.

        Raises:
            StudyError: images of that many channels, or of that size, do not suit the network.
        """
        if image_shape[2] not in (1, self._channels):
            wanted = "1 channel" if self._channels == 1 else f"1 or {self._channels} channels"
            raise StudyError(f"{self._name} takes images of {wanted}, not {image_shape[2]}")
        try:
            return self(np.zeros((1, *image_shape), np.uint8)).shape[1:]
        except (AssertionError, RuntimeError) as error:
            size = "x".join(map(str, self._crop or self._size or image_shape[:2]))
            reason = (str(error) or type(error).__name__).splitlines()[0].rstrip(".")
            raise StudyError(f"{self._name} cannot take images of {size} ({reason}); mend `size`") from None

    def __call__(self, images: np.ndarray) -> np.ndarray:
        """(n, H, W, C) uint8 to (n, d) float32."""
        import torch

        height, width = self._crop or self._size or images.shape[1:3]
        self._suit(height, width)
        # exact float32 and the same algorithm every time, also on a GPU
        exact = {"enabled": True, "benchmark": False, "deterministic": True, "allow_tf32": False}
        with torch.inference_mode(), torch.backends.cudnn.flags(**exact):
            return in_blocks(self._features, images, self.block(height, width))

    def _features(self, images: np.ndarray) -> np.ndarray:
        planes = self.planes(images)
        if planes.shape not in self._runners:
            name, run = backends.runner(self._wanted, self.network, tuple(planes.shape), self._device.type)
            self._runners[planes.shape] = backends.version(name), run
        self.backend, run = self._runners[planes.shape]
        features = run(planes).float()
        if self._mirror:
            features = (features + run(planes.flip(3)).float()) / 2
        return features.cpu().numpy()

    def block(self, height: int, width: int) -> int:
        """How many images of what the network gets go through it at once."""
        return max(1, _PIXELS[self._device.type] // (height * width))

    def _suit(self, height: int, width: int) -> None:
        """Give a transformer made for images of another size one position for each patch: resampled, as timm does."""
        made_for = getattr(getattr(self.network, "patch_embed", None), "img_size", None)
        if made_for and tuple(made_for) != (height, width) and hasattr(self.network, "set_input_size"):
            self.network.set_input_size((height, width))

    def planes(self, images: np.ndarray):
        """What the network gets: (n, C, h, w) float32 on its device."""
        import torch
        from torch.nn.functional import interpolate

        planes = torch.tensor(images, device=self._device).permute(0, 3, 1, 2).contiguous().float() / 255
        if self._size and self._size != tuple(planes.shape[2:]):
            planes = interpolate(planes, self._size, mode="bicubic", antialias=True).clamp_(0, 1)
        if self._crop:
            planes = _middle(planes, self._crop)
        planes = planes.expand(-1, self._channels, -1, -1).contiguous()  # grey: the same plane three times
        return standardised(planes, self._scaling)


def _middle(planes, crop: tuple[int, int]):
    """The middle (h, w) of planes (n, C, H, W)."""
    height, width = planes.shape[2:]
    if crop[0] > height or crop[1] > width:
        raise StudyError(
            f"crop: {crop[0]}x{crop[1]} does not fit into images of {height}x{width}; mend `crop` or `size`"
        )
    top, left = (height - crop[0]) // 2, (width - crop[1]) // 2
    return planes[:, :, top : top + crop[0], left : left + crop[1]]
