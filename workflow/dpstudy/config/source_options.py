"""Checks of the keys and numbers of data sets, fits and feature sets, by the reader or extractor that takes them."""

import math

from dpstudy.config.locations import sources_of
from dpstudy.config.origins import check_backbone, check_origin, note_origin, packaged
from dpstudy.core.errors import Mistakes, StudyError
from dpstudy.data.bands import check_entries
from dpstudy.features import NOT_COMPUTED
from dpstudy.schema.messages import check_known
from dpstudy.schema.reading import schema

_OF_FIT = ("extractor", "scaling", "backbone", "mirror", "root", "deskew")  # what a fit says of its features itself
_NOT_EXTRACTED = {"fit", "normalise", "dtype"}  # keys that change nothing of what a fit sees


def check_sources(config: dict, mistakes: Mistakes) -> None:
    """Check that each data set's keys are ones its reader takes, and that its numbers leave records to train on."""
    for place, entry in sources_of(config):
        with mistakes.kept():
            _check_reader(place, entry)
    for name, dataset in config["datasets"].items():
        with mistakes.kept():
            _check_numbers(f"datasets.{name}", dataset)


def _check_reader(place: str, entry: dict) -> None:
    taken = schema("config")["$defs"]["source"]["x-readers"]
    reader_keys = {key for keys in taken.values() for key in keys}
    reader = entry["reader"]
    if reader == "image_table" and "table" not in entry:
        raise StudyError(f"{place}: the key 'table' is missing; it names a CSV or parquet file in `location`")
    for key in entry:
        if key in reader_keys and key not in taken[reader]:
            takes = ", ".join(taken[reader]) or "none of its own"
            raise StudyError(f"{place}.{key}: the reader {reader!r} does not take this key; it takes {takes}")
    if "location" in taken[reader] and "location" not in entry:
        raise StudyError(f"{place}: the key 'location' is missing; reader {reader!r} needs a folder under data_root")


def _check_numbers(place: str, dataset: dict) -> None:
    if not 0 < _number(dataset["delta"]) < 1:
        raise StudyError(f"{place}.delta: {dataset['delta']!r} must lie between 0 and 1")
    splits = dataset["splits"]
    if splits.get("test", 0) + splits["validation"] + splits.get("left_out", 0) >= 1:
        raise StudyError(f"{place}.splits: test, validation and left_out leave nothing to train on")
    if "left_out" in splits and "records" in splits:
        raise StudyError(f"{place}.splits: give either 'left_out', a fraction, or 'records', a number")
    _check_unit(place, dataset)
    check_entries(dataset.get("group_columns", []), f"{place}.group_columns")


def _check_unit(place: str, dataset: dict) -> None:
    if dataset["unit"] != "subject":
        for key in ("per_subject", "contributions"):
            if key in dataset:
                raise StudyError(f"{place}.{key}: is for unit: subject; leave it out")
        return
    if dataset.setdefault("per_subject", 1) == 1 and dataset.get("contributions") == "average":
        raise StudyError(f"{place}.contributions: with per_subject: 1 there is nothing to average; raise per_subject")
    if dataset["reader"] == "image_table" and "subject_column" not in dataset:
        raise StudyError(f"{place}: the key 'subject_column' is missing; unit: subject needs to know whose each row is")
    for key, given in (("splits.records", "records" in dataset["splits"]), ("extra", "extra" in dataset)):
        if given:
            raise StudyError(
                f"{place}.{key}: does not go with unit: subject, whose records would push others out or belong to "
                "nobody; leave it out"
            )


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def check_fit(place: str, fit: dict, config: dict) -> None:
    """Check that a projection's keys are ones its extractor takes, and that the names in it exist.

    Raises:
        StudyError: names the key.
    """
    check_known(f"{place}.public", fit["public"], config["public"], "public data set")
    if "features" in fit:
        _check_fitted_on(place, fit, config)
        return
    if "extractor" not in fit:
        raise StudyError(f"{place}: needs the key 'features', a feature set that it is fitted on, or 'extractor'")
    taken = schema("config")["$defs"]["features"]["x-extractors"][fit["extractor"]]
    for key in ("mirror", "root", "deskew"):
        if key in fit and key not in taken:
            raise StudyError(f"{place}.{key}: the extractor {fit['extractor']!r} does not take this key")
    check_backbone(place, fit, config)


def _check_fitted_on(place: str, fit: dict, config: dict) -> None:
    """Put the feature set that a fit names in the name's place.

    Raises:
        StudyError: there is none, or it cannot be fitted on, or keys stand beside it that it has itself.
    """
    if fit["scaling"] == "unit":  # the default
        del fit["scaling"]
    for key in _OF_FIT:
        if key in fit:
            raise StudyError(f"{place}.{key}: does not go with `features`, which says so itself; leave it out")
    fit["features"] = _named(f"{place}.features", fit["features"], config)


def _named(place: str, name: str | dict, config: dict) -> dict:
    """A feature set by its name, of those that compute features from images and have no fit.

    Raises:
        StudyError: it is none of them.
    """
    if isinstance(name, dict):
        raise StudyError(f"{place}: is no name; give the feature set a name under `features`, and write that here")
    check_known(place, name, config["features"], "feature set")
    options = config["features"][name]
    if options["extractor"] in NOT_COMPUTED:
        raise StudyError(f"{place}: the extractor {options['extractor']!r} computes no features from images")
    if "fit" in options:
        raise StudyError(f"{place}: has a projection, the fit {options['fit']!r}; name a feature set without one")
    return options


def check_features(place: str, features: dict, config: dict) -> None:
    """Check that a feature set's keys are ones its extractor takes, and that the names in it exist.

    Raises:
        StudyError: names the key.
    """
    _check_extractor(place, features)
    if "parts" in features:
        _check_parts(place, features, config)
    check_backbone(place, features, config)
    if isinstance(weights := features.get("weights"), dict):
        _check_package(place, features, weights)
    if features.get("weights", "random") != "random":
        check_origin(place, features, config)
    if "fit" in features:
        check_known(f"{place}.fit", features["fit"], config["fits"], "fit")


def check_made_alike(place: str, features: dict, config: dict) -> None:
    """Check that a feature set with a fit is extracted with the options that the fit was made with.

    Raises:
        StudyError: names the key.
    """
    fit = config["fits"].get(features.get("fit"), {})
    source = fit.get("features", fit)
    if "extractor" not in source or isinstance(source, str):  # none, or told already
        return
    others = set() if source is fit else {*features, *source} - _NOT_EXTRACTED - {*_OF_FIT}
    for key in (*_OF_FIT, *sorted(others)):
        if (features.get(key) or None) != (source.get(key) or None):  # false: absent
            raise StudyError(
                f"{place}.{key}: {features.get(key)!r}, but the fit {features['fit']!r} was made with "
                f"{source.get(key)!r}; they must be the same"
            )


def _check_parts(place: str, features: dict, config: dict) -> None:
    """Put the feature sets that are joined in their names' place.

    Raises:
        StudyError: one is not there, is joined itself, or does not compute features from images.
    """
    parts = []
    for number, name in enumerate(features["parts"]):
        parts.append(_named(f"{place}.parts[{number}]", name, config))
        if "parts" in parts[-1]:
            raise StudyError(f"{place}.parts[{number}]: is joined itself; name what it is joined of")
    features["parts"] = parts


def _check_package(place: str, features: dict, weights: dict) -> None:
    """Weights of a package are of the network that it is for, and known by their hash."""
    known = packaged(place, weights)
    if features["model"] != known.model:
        raise StudyError(f"{place}.model: {weights['package']} has the weights of {known.model!r}; write that")
    if "sha256" in features:
        raise StudyError(f"{place}.sha256: of a package it stands in `weights`, or not at all")
    note_origin(place, features, known)


def _check_extractor(place: str, options: dict) -> None:
    """Each feature set's keys are those that its extractor takes."""
    extractor, rules = options["extractor"], schema("config")["$defs"]["features"]
    extractor_keys = {key for keys in rules["x-extractors"].values() for key in keys}
    for key in options:
        if key in extractor_keys and key not in rules["x-extractors"][extractor]:
            raise StudyError(f"{place}.{key}: the extractor {extractor!r} does not take this key")
    for key in rules["x-required"].get(extractor, []):
        if key not in options:
            raise StudyError(f"{place}: the extractor {extractor!r} needs the key {key!r}")
    if extractor == "images":
        for key, only in (("normalise", "none"), ("fit", None), ("dtype", "float32")):
            if options.get(key, only) != only:
                raise StudyError(f"{place}.{key}: the extractor 'images' leaves images as they are; leave it out")
        if options["scaling"] == "opponent":
            raise StudyError(
                f"{place}.scaling: the extractor 'images' takes unit, symmetric, imagenet or cifar; or use pixels"
            )
    if options["scaling"] == "model" and extractor != "timm":
        raise StudyError(
            f"{place}.scaling: 'model' is for the extractor 'timm'; choose unit, symmetric, imagenet or cifar"
        )
    drawn = options.get("weights") == "random"
    for key in ("sha256", "trained_on") if drawn else ("seed",) if extractor == "timm" else ():
        if key in options:
            raise StudyError(f"{place}.{key}: does not go with weights {options['weights']!r}; leave it out")
