"""Preparing images for a network (resizing, cropping, scaling, channels) and running it on them."""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.features import backends
from dpstudy.features.blocks import in_blocks
from dpstudy.features.scaling import standardised

FLOAT32 = "float32"
_NEAR = {
    FLOAT32: 1e-4,
    "tf32": 5e-3,
    "bfloat16": 3e-2,
}  # of the largest feature: how far a backend's may be from torch's
_DEFAULTS: dict[str, Any] = {
    "crop": None,
    "backend": backends.AUTO,
    "mirror": False,
    "crops": "middle",
    "precision": FLOAT32,
}
_PIXELS = {"cpu": 2**16, "cuda": 2**21}  # network inputs at once; another size rounds otherwise


class NetworkInput:
    """A network in evaluation mode with its preprocessing.

    Args:
        network: planes (n, C, h, w) to (n, d).
        channels: C that it takes.
        scaling: a name of features.scaling, or the means and the standard deviations of the channels.
        size: (H, W) that images are resized to; None: as they are.
        name: of the network, for messages.
        options: of the feature set, of which count here: `crop`, (h, w) of the middle that is then taken, absent: all;
            `backend`, what runs the network (features.backends), absent: auto; `mirror`, average the features of an
            image and its mirror image; `crops`, "five" averages those of the middle and the four corners of size
            `crop`, absent: "middle"; `precision` of the passes, float32 (exact, where absent), tf32 or bfloat16.

    Attributes:
        network: on the device where it runs.
        backend: what ran it last, with its version; None before.
    """

    def __init__(self, network, channels: int, scaling, size=None, name: str = "", options: Mapping | None = None):
        import torch

        given = _DEFAULTS | dict(options or {})
        crop, precision = given["crop"], given["precision"]
        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.network = network.eval().requires_grad_(False).to(self._device)
        self._channels, self._scaling, self._name = channels, scaling, name
        self._size, self._crop = size and tuple(size), crop and tuple(crop)
        self._wanted, self._mirror, self._crops = given["backend"], given["mirror"], given["crops"]
        self._precision = precision
        if self._crops == "five" and crop is None:
            raise StudyError(f"{name}: crops: five needs the key `crop`, the size of each")
        if precision != FLOAT32 and self._wanted == backends.OPENVINO:
            raise StudyError(f"{name}: precision: {precision} is for backend torch or compile; OpenVINO has float32")
        if precision != FLOAT32 and self._device.type == "cuda":
            self.network = self.network.to(memory_format=torch.channels_last)
        self._runners: dict[tuple, tuple[str, backends.Run]] = {}
        self.backend: str | None = None

    def shape(self, image_shape: tuple[int, int, int]) -> tuple[int]:
        """(d,), found by running the network on a black image.

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
        with torch.inference_mode(), self._rounding():
            return in_blocks(self._features, images, self.block(height, width))

    @contextlib.contextmanager
    def _rounding(self) -> Iterator[None]:
        """The precision that was asked for, and the same algorithm every time, also on a GPU."""
        import torch

        short = self._precision == "tf32"
        before, torch.backends.cuda.matmul.allow_tf32 = torch.backends.cuda.matmul.allow_tf32, short
        flags = {"enabled": True, "benchmark": False, "deterministic": True, "allow_tf32": short}
        try:
            with (
                torch.backends.cudnn.flags(**flags),
                torch.autocast(self._device.type, torch.bfloat16, enabled=self._precision == "bfloat16"),
            ):
                yield
        finally:
            torch.backends.cuda.matmul.allow_tf32 = before

    def _features(self, images: np.ndarray) -> np.ndarray:
        import torch

        views = [planes for part in self.views(images) for planes in ([part, part.flip(3)] if self._mirror else [part])]
        shape = tuple(views[0].shape)
        if shape not in self._runners:
            near = _NEAR[self._precision]
            name, run = backends.runner(self._wanted, self.network, shape, self._device.type, near)
            self._runners[shape] = backends.version(name), run
        self.backend, run = self._runners[shape]
        return torch.stack([run(planes).float() for planes in views]).mean(0).cpu().numpy()

    def block(self, height: int, width: int) -> int:
        """The number of network inputs of this size that are run at once."""
        return max(1, _PIXELS[self._device.type] // (height * width))

    def _suit(self, height: int, width: int) -> None:
        """Give a transformer made for images of another size one position for each patch: resampled, as timm does."""
        made_for = getattr(getattr(self.network, "patch_embed", None), "img_size", None)
        if made_for and tuple(made_for) != (height, width) and hasattr(self.network, "set_input_size"):
            self.network.set_input_size((height, width))

    def views(self, images: np.ndarray) -> list:
        """The network's inputs for each crop: (n, C, h, w) float32 on its device.

        Raises:
            StudyError: `crop` is larger than the images.
        """
        import torch
        from torch.nn.functional import interpolate

        planes = torch.tensor(images, device=self._device).permute(0, 3, 1, 2).contiguous().float() / 255
        if self._size and self._size != tuple(planes.shape[2:]):
            planes = interpolate(planes, self._size, mode="bicubic", antialias=True).clamp_(0, 1)
        laid = torch.contiguous_format
        if self._precision != FLOAT32 and self._device.type == "cuda":
            laid = torch.channels_last
        return [  # grey: the same plane three times
            standardised(
                planes[:, :, top : top + height, left : left + width]
                .expand(-1, self._channels, -1, -1)
                .contiguous(memory_format=laid),
                self._scaling,
            )
            for top, left, height, width in self._places(*planes.shape[2:])
        ]

    def _places(self, height: int, width: int) -> list[tuple[int, int, int, int]]:
        """(top, left, height, width) of each part that is taken of images; the middle is the first."""
        if not self._crop:
            return [(0, 0, height, width)]
        down, right = height - self._crop[0], width - self._crop[1]
        if min(down, right) < 0:
            raise StudyError(
                f"crop: {self._crop[0]}x{self._crop[1]} does not fit into images of {height}x{width}; mend `crop` or "
                "`size`"
            )
        corners = [(0, 0), (0, right), (down, 0), (down, right)] if self._crops == "five" else []
        return [(*corner, *self._crop) for corner in ((down // 2, right // 2), *corners)]
