"""Features of a network pre-trained on public data within the study (a backbone)."""

import os
from pathlib import Path

from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json, read_tensors
from dpstudy.features.network_input import NetworkInput
from dpstudy.models.layout import shape_of


class Backbone(NetworkInput):
    """Features (d,) of a backbone: the inputs of its classifier.

    For a small CNN they are its centred unit embeddings (models.small_cnn).
    """

    def __init__(self, folder: str | os.PathLike, options: dict | None = None):
        import torch

        from dpstudy.models import backbones, networks
        from dpstudy.models.small_cnn import Centred, SmallCNN

        options = options or {}
        self.card = read_json(Path(folder) / "card.json")
        trained = self.card["options"]
        self._trained = tuple(self.card["image_shape"])
        shape_of(f"{folder}: image_shape of card.json", str([*self._trained[2:], *self._trained[:2]]))
        tensors = read_tensors(Path(folder) / "model.safetensors")

        def made():  # with a classifier of one class, which is taken off
            return backbones.build(trained, self._trained, 1)

        unfit = f"{folder}: model.safetensors and card.json do not fit; delete both"
        networks.check_promise(lambda: backbones.body(made()), tensors, unfit)
        head = backbones.classifier(network := made())
        network = backbones.body(network)
        weights = {key: torch.from_numpy(value) for key, value in tensors.items() if not key.startswith(f"{head}.")}
        try:
            network.load_state_dict(weights)
        except RuntimeError:
            raise StudyError(unfit) from None
        if options.get("pool", "model") != "model":
            network = backbones.body(network, options["pool"])
        network = Centred(network) if isinstance(network, SmallCNN) else network
        size = options.get("size", "model" if trained.get("size") else "native")
        self._as_trained = size == "native" and "crop" not in options
        super().__init__(
            network,
            self._trained[2],
            trained.get("scaling", "unit"),
            self._trained[:2] if size == "model" else None if size == "native" else size,
            f"backbone {self.card['backbone']!r}",
            options,
        )

    def shape(self, image_shape: tuple[int, int, int]) -> tuple[int]:
        """(d,), for images of the shape that the network was trained on, unless they are resized.

        Raises:
            StudyError: such images do not suit the network.
        """
        if self._as_trained and tuple(image_shape) != self._trained:
            raise StudyError(
                f"backbone {self.card['backbone']!r} was trained on images (H, W, C) of {self._trained}, not"
                f" {tuple(image_shape)}; choose a public set of the same size, or give `size`: they are resized to it"
            )
        return super().shape(image_shape)


def open(options: dict, *, backbone_folder: str | os.PathLike | None = None, data_root=None) -> Backbone:
    """The backbone extractor; `backbone_folder` holds model.safetensors and card.json.

    Options: `size` ([H, W]; model, what it was trained on; or native, the images as they are), `crop`, `crops`, `pool`,
    `backend`, `mirror` and `precision`, as those of timm.

    Raises:
        StudyError: no folder is given, or its files are missing or damaged.
    """
    if backbone_folder is None:
        raise StudyError("extractor 'backbone' needs the folder of a pre-trained network (results/backbones/NAME)")
    return Backbone(backbone_folder, options)
