"""Features of a network that was pre-trained on public data."""

import os
from pathlib import Path

import numpy as np

from dpstudy.errors import StudyError
from dpstudy.features.scaling import scale
from dpstudy.files import read_json, read_tensors


class Backbone:
    """Features (embedding,): centred unit embeddings of a pre-trained small CNN (see models.small_cnn)."""

    def __init__(self, folder: str | os.PathLike):
        import torch

        from dpstudy.models.small_cnn import SmallCNN

        self.card = read_json(Path(folder) / "card.json")
        options = self.card["options"]
        self._network = SmallCNN(
            self.card["image_shape"][2], len(self.card["classes"]), options["width"], options["embedding"]
        )
        tensors = read_tensors(Path(folder) / "model.safetensors")
        try:
            self._network.load_state_dict({name: torch.from_numpy(value) for name, value in tensors.items()})
        except RuntimeError:
            raise StudyError(f"{folder}: model.safetensors and card.json do not fit; delete both") from None
        self._network.eval()

    def shape(self, image_shape: tuple[int, int, int]) -> tuple[int]:
        """(embedding,), for images of the shape that the network was trained on."""
        trained = tuple(self.card["image_shape"])
        if tuple(image_shape) != trained:
            raise StudyError(
                f"backbone {self.card['backbone']!r} was trained on images (H, W, C) of {trained}, not"
                f" {tuple(image_shape)}; choose a public set of the same size"
            )
        return (self.card["options"]["embedding"],)

    def __call__(self, images: np.ndarray) -> np.ndarray:
        """(n, H, W, C) uint8 to (n, embedding) float32 of L2 norm 1."""
        import torch

        planes = np.ascontiguousarray(scale(images, "unit").transpose(0, 3, 1, 2))
        with torch.inference_mode():
            return self._network.features(torch.from_numpy(planes)).numpy()


def open(options: dict, *, backbone_folder: str | os.PathLike | None = None, data_root=None) -> Backbone:
    """The extractor; `backbone_folder` holds model.safetensors and card.json.

    Raises:
        StudyError: no folder is given, or its files are missing or damaged.
    """
    if backbone_folder is None:
        raise StudyError("extractor 'backbone' needs the folder of a pre-trained network (results/backbones/NAME)")
    return Backbone(backbone_folder)
