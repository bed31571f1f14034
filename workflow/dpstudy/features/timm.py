"""Features of a public network (timm's, or tramer2021's ResNeXt-29) with weights that the user supplies.

The features are what the network's classifier would see: pooled, before the logits. Batch normalisation uses its stored
statistics, so that a record's features depend on that record alone. Weights are never drawn at random in silence:
`weights: random` asks for an untrained network, as a control.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json
from dpstudy.features.network_input import NetworkInput
from dpstudy.features.scaling import CONSTANTS
from dpstudy.features.weights import check_fetched, check_file, fetched, fitting

RESNEXT = "resnext29-cifar"
RANDOM, HUB = "random", "hub"


class PublicNetwork(NetworkInput):
    """Features (d,) of a public network in evaluation mode.

    Attributes:
        made_from: the model, and the SHA-256 of its weights or the seed of random ones.
    """

    def __init__(self, options: dict, data_root: str | os.PathLike | None, converted: str | os.PathLike | None = None):
        import torch

        from dpstudy.models.backbones import body
        from dpstudy.models.stages import stages

        model, weights = options["model"], options["weights"]
        with torch.device("meta"):  # takes no memory: the name may claim a larger network than the file
            outline, config = _build(model)
        path = None
        if weights == RANDOM:
            self.made_from = {"model": model, "weights": RANDOM, "seed": str(options.get("seed", 0))}
        elif isinstance(weights, dict):
            card, path = _packaged(weights["package"], converted)
            self.made_from = {"model": model, "weights": check_file(path), **card}
        else:
            path = fetched(model, config) if weights == HUB else Path(data_root or ".") / weights
            check = check_fetched if weights == HUB else check_file
            self.made_from = {"model": model, "weights": check(path, options.get("sha256"))}
        tensors = fitting(outline, path, _names(config["classifier"])) if path else {}
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(options.get("seed", 0))
            network = _build(model)[0]
        network.load_state_dict(tensors, strict=False)
        if options.get("pool", "model") != "model":
            network = body(network, options["pool"])
        if "layers" in options:
            network = stages(network, options["layers"], f"network {model!r}")
        scaling, size = options.get("scaling", "model"), options.get("size", "model")
        super().__init__(
            network,
            3,
            (config["mean"], config["std"]) if scaling == "model" else scaling,
            config["input_size"][1:] if size == "model" else None if size == "native" else size,
            f"network {model!r}",
            options,
        )


def _build(model: str):
    """The network without its classifier, and timm's facts about it: input_size (C, H, W), mean, std, classifier."""
    if model == RESNEXT:
        from dpstudy.models.resnext29 import ResNeXt29

        mean, std = CONSTANTS["cifar"]
        return ResNeXt29(), {"input_size": (3, 32, 32), "mean": mean, "std": std, "classifier": "classifier"}
    import timm

    if model.startswith("nf-resnet-"):  # depths that timm has no name for
        from dpstudy.models import backbones, timm_network

        network = backbones.body(timm_network.build(model, (3, 64, 64), 1))
        return network, network.pretrained_cfg
    if not timm.is_model(model):
        raise StudyError(f"model {model!r} is neither {RESNEXT!r} nor one of timm {timm.__version__}'s networks")
    network = timm.create_model(model, pretrained=False, num_classes=0)
    config: Mapping = network.pretrained_cfg  # type: ignore[assignment]  # torch calls what it knows nothing of a tensor
    if config["input_size"][0] != 3:
        raise StudyError(f"model {model!r} does not take RGB images")
    return network, config


def _packaged(package: str, folder: str | os.PathLike | None) -> tuple[dict[str, str], Path]:
    """(package and version, file) of weights that came as a package and were converted into a folder."""
    if folder is None:
        raise StudyError(f"weights of {package!r}: give the folder that features.packaged.convert wrote them to")
    card = read_json(Path(folder) / "card.json")
    return {key: card[key] for key in ("package", "version")}, Path(folder) / "model.safetensors"


def _names(layers: str | tuple[str, ...] | None) -> tuple[str, ...]:
    return () if layers is None else (layers,) if isinstance(layers, str) else tuple(layers)


def open(options: dict, *, backbone_folder=None, data_root=None) -> PublicNetwork:
    """The extractor of a public network.

    Options: `model`, `weights` (a file below `data_root`, hub, random, or {package: NAME}, converted in
    `backbone_folder`), `sha256`, `seed`, `scaling`, `size` ([H, W]; model, the network's own; or native, the images as
    they are), `crop` ([h, w], the middle of that), `pool` (of networks with tokens: token, mean; or model, as it was
    trained), `backend`, and `mirror` (false).

    Raises:
        StudyError: there is no such network, or its weights are missing, are others than `sha256` says or do not fit.
    """
    return PublicNetwork(options, data_root, backbone_folder)
