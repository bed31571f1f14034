"""Features of a network that was pre-trained on public data."""

import os
from pathlib import Path

import numpy as np

from dpstudy.errors import StudyError
from dpstudy.features.scaling import scale
from dpstudy.files import read_json, read_tensors


class Backbone:
    """Features (d,) of a pre-trained network: the centred unit embeddings of a small CNN (models.small_cnn), or what
    the classifier of a Wide ResNet would see."""

    def __init__(self, folder: str | os.PathLike):
        import torch

        from dpstudy.models.backbones import build

        self.card = read_json(Path(folder) / "card.json")
        options = self.card["options"]
        network = build(options, self.card["image_shape"], len(self.card["classes"]))
        tensors = read_tensors(Path(folder) / "model.safetensors")
        try:
            network.load_state_dict({name: torch.from_numpy(value) for name, value in tensors.items()})
        except RuntimeError:
            raise StudyError(f"{folder}: model.safetensors and card.json do not fit; delete both") from None
        network.eval()
        self._scaling = options.get("scaling", "unit")
        small = options["architecture"] == "small_cnn"
        self._features, self._dim = (
            (network.features, options["embedding"]) if small else (network[:-1], network[-1].in_features)
        )

    def shape(self, image_shape: tuple[int, int, int]) -> tuple[int]:
        """(d,), for images of the shape that the network was trained on."""
        trained = tuple(self.card["image_shape"])
        if tuple(image_shape) != trained:
            raise StudyError(
                f"backbone {self.card['backbone']!r} was trained on images (H, W, C) of {trained}, not"
                f" {tuple(image_shape)}; choose a public set of the same size"
            )
        return (self._dim,)

    def __call__(self, images: np.ndarray) -> np.ndarray:
        """(n, H, W, C) uint8 to (n, d) float32."""
        import torch

        planes = np.ascontiguousarray(scale(images, self._scaling).transpose(0, 3, 1, 2))
        with torch.inference_mode():
            return self._features(torch.from_numpy(planes)).numpy()


def open(options: dict, *, backbone_folder: str | os.PathLike | None = None, data_root=None) -> Backbone:
    """The extractor; `backbone_folder` holds model.safetensors and card.json.

    Raises:
        StudyError: no folder is given, or its files are missing or damaged.
    """
    if backbone_folder is None:
        raise StudyError("extractor 'backbone' needs the folder of a pre-trained network (results/backbones/NAME)")
    return Backbone(backbone_folder)
