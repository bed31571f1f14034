"""Validation of bundle.json, by its schema or in plain Python.

The packages that read schemas are left out where nothing else needs them: of extractors that are arithmetic alone.
"""

from collections.abc import Iterator

from dpstudy.core.errors import StudyError
from dpstudy.data.windows import window_of

PLAIN = ("pixels", "scatternet")
_LARGEST = 4096  # pixels a side
_IMAGE = {"size", "channels", "crop", "frame", "window"}
_FLAGS = ("mirror", "root", "deskew")
_FEATURES = {
    "scaling": ("unit", "symmetric", "imagenet", "cifar", "opponent", "model"),
    "dtype": ("float16", "float32"),
}
_OWN = {"pixels": ("deskew",), "scatternet": _FLAGS}


def check_facts(facts: object, where: str) -> None:
    """Check the content of a bundle.json.

    Raises:
        StudyError: a key is missing or unknown, or has a value that it cannot have.
    """
    features = facts.get("features") if isinstance(facts, dict) else None
    extractor = features.get("extractor") if isinstance(features, dict) else None
    if isinstance(facts, dict) and isinstance(features, dict) and extractor in PLAIN:
        for wrong in _wrong(facts, features):
            raise StudyError(f"{where}: {wrong}")
        return
    from dpstudy.schema.reading import check

    check(facts, "bundle", where)


def _wrong(facts: dict, features: dict) -> Iterator[str]:
    """What is wrong, the first alone being of use."""
    for key in ("classes", "multi_label", "image", "features"):
        if key not in facts:
            yield f"lacks {key!r}"
    if not isinstance(facts.get("name", ""), str):
        yield "'name' is no text"
    if facts.get("backend", "torch") != "torch":
        yield "'backend' is not torch"
    classes = facts["classes"]
    if not (isinstance(classes, list) and classes and all(isinstance(name, str) for name in classes)):
        yield "'classes' is no list of names"
    if not isinstance(facts["multi_label"], bool):
        yield "'multi_label' is neither true nor false"
    yield from _wrong_image(facts["image"])
    yield from _wrong_features(features)


def _wrong_image(image: object) -> Iterator[str]:
    if not isinstance(image, dict) or not {"size", "channels", "crop"} <= image.keys() <= _IMAGE:
        yield "'image' has not the keys size, channels and crop"
        return
    size = image["size"]
    if not (isinstance(size, list) and len(size) == 2 and all(_is_count(side, 1, _LARGEST) for side in size)):
        yield f"'image.size' is no [height, width] of at most {_LARGEST}"
    if not (_is_count(image["channels"], 1, 3) and image["channels"] != 2):
        yield "'image.channels' is neither 1 nor 3"
    if not isinstance(image["crop"], bool):
        yield "'image.crop' is neither true nor false"
    if not _is_count(image.get("frame", 0), 0, float("inf")):
        yield "'image.frame' is no number of a picture"
    try:
        window_of(image)
    except StudyError as error:
        yield f"'image.{error}"


def _wrong_features(features: dict) -> Iterator[str]:
    known = {"extractor", "fit", "normalise", *_FEATURES, *_OWN[features["extractor"]]}
    if unknown := features.keys() - known:
        yield f"'features' has an unknown key {min(map(repr, unknown))}"
    if not isinstance(features.get("fit", ""), str):
        yield "'features.fit' is no text"
    for key, values in _FEATURES.items():
        if key in features and features[key] not in values:
            yield f"'features.{key}' is none of {', '.join(values)}"
    for key in _FLAGS:
        if not isinstance(features.get(key, False), bool):
            yield f"'features.{key}' is neither true nor false"
    rule = features.get("normalise", "none")
    groups = rule.get("group_norm") if isinstance(rule, dict) and rule.keys() == {"group_norm"} else None
    if rule not in ("none", "l2") and not _is_count(groups, 1, float("inf")):
        yield "'features.normalise' is none of none, l2 and {group_norm: number of groups}"


def _is_count(value: object, least: int, most: float) -> bool:
    """Whether it is an integer in [least, most]; JSON has 3.0 for one too."""
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return whole and not isinstance(value, bool) and least <= value <= most  # type: ignore[operator]
