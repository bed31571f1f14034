"""Checks of image shapes that can be read off the config, before any image is decoded."""

from dpstudy.config.cells import unfold
from dpstudy.core.errors import Mistakes, StudyError
from dpstudy.data.shard_size import Shape, told_shape
from dpstudy.features import parts_of


def check_shapes(config: dict) -> None:
    """Refuse data sets whose extra records, or whose features' public training images, have another shape.

    Raises:
        StudyError: names the two, each with its shape.
    """
    mistakes = Mistakes()
    for name, dataset in config["datasets"].items():
        with mistakes.kept():
            if "extra" in dataset:
                _check(f"datasets.{name}.extra", "this data set", dataset["extra"], name, dataset)
    for name, features in dict.fromkeys((cell.dataset, cell.features) for cell in unfold(config)):
        with mistakes.kept():
            _check_features(name, features, config)
    mistakes.tell()


def _check_features(dataset: str, name: str, config: dict) -> None:
    features, source = config["features"][name], config["datasets"][dataset]
    if "fit" in features:
        fit = config["fits"][features["fit"]]
        resized = "features" in fit and all(_is_resized(part, config) for part in parts_of(features))
        _check(f"features.{name}.fit", *_public(fit["public"], config), dataset, source, resized)
        return
    for part in parts_of(features):
        if "backbone" in part:
            public = config["backbones"][part["backbone"]]["public"]
            _check(f"features.{name}.backbone", *_public(public, config), dataset, source, _is_resized(part, config))


def _public(name: str, config: dict) -> tuple[str, dict]:
    return f"the public set {name!r}", config["public"][name]


def _is_resized(features: dict, config: dict) -> bool:
    """Whether a network's images are brought to one size, whatever theirs is."""
    trained = "size" in config["backbones"].get(features.get("backbone"), {})
    usual = "model" if features["extractor"] == "timm" else "native"
    return trained or features.get("size", usual) != "native" or "crop" in features


def _check(place: str, what: str, made_of: dict, dataset: str, source: dict, resized: bool = False) -> None:
    """`resized`: heights and widths do not matter, and a grey image may be one of three equal channels."""
    known, given = told_shape(made_of), told_shape(source)
    differ = [axis for axis in range(3) if None not in (known[axis], given[axis]) and known[axis] != given[axis]]
    if resized:
        differ = [axis for axis in differ if axis == 2 and given[2] != 1]
    if differ:
        raise StudyError(
            f"{place}: the images (height, width, channels) of {what} are {_said(known)}, those of the data set "
            f"{dataset!r} {_said(given)}; give one of them the `size` and `channels` of the other"
        )


def _said(shape: Shape) -> str:
    return " x ".join("any" if length is None else str(length) for length in shape)
