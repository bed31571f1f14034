"""Checks of the config's `dedup`."""

from dpstudy.core.errors import StudyError
from dpstudy.dedup.rule import Rule
from dpstudy.schema.messages import check_known

_OF_ALIGNED = ("possible", "margin", "embedding", "sample")
_EXTRACTORS = ("scatternet", "random_patches", "backbone", "timm")


def check_dedup(config: dict) -> None:
    """Refuse de-duplication options that contradict each other.

    Raises:
        StudyError: an option is of the other method, thresholds are out of order, or the embedding does not suit.
    """
    options = config["dedup"]
    if options["method"] != "aligned":
        for key in _OF_ALIGNED:
            if key in options:
                raise StudyError(
                    f"dedup.{key}: the method {options['method']!r} does not take this key; `aligned` does"
                )
        return
    Rule(**{key: options[key] for key in ("threshold", "possible", "margin") if key in options})
    if "embedding" in options:
        _check_embedding(options["embedding"], config)


def _check_embedding(name: str, config: dict) -> None:
    check_known("dedup.embedding", name, config["features"], "feature set")
    extractor = config["features"][name]["extractor"]
    if extractor not in _EXTRACTORS:
        raise StudyError(
            f"dedup.embedding: feature set {name!r} has the extractor {extractor!r}, which embeds no image; it must be"
            f" one of {', '.join(_EXTRACTORS)}"
        )
    if extractor == "backbone" and config["dedup"]["drop"] == "public":
        raise StudyError(
            f"dedup.embedding: the backbone of {name!r} is trained on what `drop: public` keeps, which this embedding"
            " would decide; use `drop: private`, or the extractor timm or scatternet"
        )
