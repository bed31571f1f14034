"""Features of a public network: any of timm's, or ResNeXt-29 for CIFAR, with weights that the user brings.

The features are what the network's classifier would see: pooled, before the logits. Batch normalisation uses its stored
statistics, so that a record's features depend on that record alone. Weights are never drawn at random in silence:
`weights: random` asks for an untrained network, as a control.
"""

import os
from pathlib import Path

import numpy as np

from dpstudy.errors import StudyError
from dpstudy.features.scaling import CONSTANTS
from dpstudy.features.weights import check_file, fetched, load_weights

RESNEXT = "resnext29-cifar"
RANDOM, HUB = "random", "hub"
_POOLS = {"token": "token", "mean": "avg"}  # our name, and timm's
_PIXELS = {"cpu": 2**16, "cuda": 2**21}  # network inputs at once: memory, not results, depends on it


class PublicNetwork:
    """Features (d,) of a network in evaluation mode.

    Attributes:
        made_from: the model, and the SHA-256 of its weights or the seed of random ones.
    """

    def __init__(self, options: dict, data_root: str | os.PathLike | None):
        import torch

        self.model = options["model"]
        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(options.get("seed", 0))
            self._network, config = _build(self.model, options.get("pool", "model"))
        if options["weights"] == RANDOM:
            self.made_from = {"model": self.model, "weights": RANDOM, "seed": str(options.get("seed", 0))}
        else:
            named = options["weights"]
            path = fetched(self.model, config) if named == HUB else Path(data_root or ".") / named
            self.made_from = {"model": self.model, "weights": check_file(path, options.get("sha256"))}
            load_weights(self._network, path, _names(config["classifier"]))
        self._network.eval().requires_grad_(False).to(self._device)
        scaling, size = options.get("scaling", "model"), options.get("size", "model")
        self._mean, self._std = (config["mean"], config["std"]) if scaling == "model" else CONSTANTS[scaling]
        self._size = tuple(config["input_size"][1:]) if size == "model" else None if size == "native" else tuple(size)
        self._crop = tuple(options["crop"]) if "crop" in options else None

    def shape(self, image_shape: tuple[int, int, int]) -> tuple[int]:
        """(d,), found by a run on a black image.

        Raises:
            StudyError: images of that many channels, or of that size, do not suit the network.
        """
        if image_shape[2] not in (1, 3):
            raise StudyError(f"network {self.model!r} takes images of 1 or 3 channels, not {image_shape[2]}")
        try:
            return self(np.zeros((1, *image_shape), np.uint8)).shape[1:]
        except (AssertionError, RuntimeError) as error:
            size = "x".join(map(str, self._crop or self._size or image_shape[:2]))
            reason = (str(error) or type(error).__name__).splitlines()[0].rstrip(".")
            raise StudyError(f"network {self.model!r} cannot take images of {size} ({reason}); mend `size`") from None

    def __call__(self, images: np.ndarray) -> np.ndarray:
        """(n, H, W, C) uint8 to (n, d) float32."""
        import torch

        height, width = self._crop or self._size or images.shape[1:3]
        block = max(1, _PIXELS[self._device.type] // (height * width))
        # exact float32 and the same algorithm every time, also on a GPU
        exact = {"enabled": True, "benchmark": False, "deterministic": True, "allow_tf32": False}
        with torch.inference_mode(), torch.backends.cudnn.flags(**exact):
            found = [self._features(images[start : start + block]) for start in range(0, len(images), block)]
        return np.concatenate(found)

    def _features(self, images: np.ndarray) -> np.ndarray:
        import torch
        from torch.nn.functional import interpolate

        planes = torch.tensor(images, device=self._device).permute(0, 3, 1, 2).contiguous().float() / 255
        if self._size and self._size != tuple(planes.shape[2:]):
            planes = interpolate(planes, self._size, mode="bicubic", antialias=True).clamp_(0, 1)
        if self._crop:
            planes = _middle(planes, self._crop)
        planes = planes.expand(-1, 3, -1, -1).contiguous()  # grey: the same plane three times
        mean, std = (torch.tensor(v, device=self._device).view(3, 1, 1) for v in (self._mean, self._std))
        return self._network((planes - mean) / std).float().cpu().numpy()


def _middle(planes, crop: tuple[int, int]):
    """The middle (h, w) of planes (n, C, H, W)."""
    height, width = planes.shape[2:]
    if crop[0] > height or crop[1] > width:
        raise StudyError(
            f"crop: {crop[0]}x{crop[1]} does not fit into images of {height}x{width}; mend `crop` or `size`"
        )
    top, left = (height - crop[0]) // 2, (width - crop[1]) // 2
    return planes[:, :, top : top + crop[0], left : left + crop[1]]


def _build(model: str, pool: str):
    """The network without its classifier, and timm's facts about it: input_size (C, H, W), mean, std, classifier."""
    if pool != "model" and (model == RESNEXT or model.startswith("nf-resnet-")):
        raise StudyError(f"pool: model {model!r} has no tokens to choose from; leave `pool` out")
    if model == RESNEXT:
        from dpstudy.models.resnext29 import ResNeXt29

        mean, std = CONSTANTS["cifar"]
        return ResNeXt29(), {"input_size": (3, 32, 32), "mean": mean, "std": std, "classifier": "classifier"}
    import timm

    if model.startswith("nf-resnet-"):  # depths that timm has no name for
        from dpstudy.models import timm_network

        network = timm_network.build(model, (3, 64, 64), 1)
        network.reset_classifier(0)
        return network, network.pretrained_cfg
    if not timm.is_model(model):
        raise StudyError(f"model {model!r} is neither {RESNEXT!r} nor one of timm {timm.__version__}'s networks")
    try:
        more = {} if pool == "model" else {"global_pool": _POOLS[pool]}
        network = timm.create_model(model, pretrained=False, num_classes=0, **more)
    except (TypeError, AssertionError, ValueError) as error:
        raise StudyError(f"pool: model {model!r} does not take {pool!r} ({str(error).splitlines()[0]})") from None
    if network.pretrained_cfg["input_size"][0] != 3:
        raise StudyError(f"model {model!r} does not take RGB images")
    return network, network.pretrained_cfg


def _names(layers: str | tuple[str, ...] | None) -> tuple[str, ...]:
    return () if layers is None else (layers,) if isinstance(layers, str) else tuple(layers)


def open(options: dict, *, backbone_folder=None, data_root=None) -> PublicNetwork:
    """The extractor; options `model`, `weights` (a file below `data_root`, hub or random), `sha256`, `seed`, `scaling`,
    `size` ([H, W]; model, the network's own; or native, the images as they are), `crop` ([h, w], the middle of that),
    and `pool` (of networks with tokens: token, mean; or model, as it was trained).

    Raises:
        StudyError: there is no such network, or its weights are missing, are others than `sha256` says or do not fit.
    """
    return PublicNetwork(options, data_root)
