"""Loading a study's config: defaults filled, every mistake named before anything runs."""

import copy
import math
from typing import Any

from dpstudy.config.black_box_options import check_black_box
from dpstudy.config.cells import matching, unfold
from dpstudy.config.dedup_options import check_dedup
from dpstudy.config.label_kinds import check_label_kinds
from dpstudy.config.locations import sources_of
from dpstudy.config.narrowing import narrow, study_of
from dpstudy.config.new_methods import check_method
from dpstudy.config.origins import check_backbone, check_backbones, check_origin, check_start
from dpstudy.config.public_points import check_public_points
from dpstudy.config.secure import check_budget, check_secure
from dpstudy.config.size import check_size
from dpstudy.config.space import check_grid, check_space, corners
from dpstudy.config.tuned import check_tuned
from dpstudy.core.errors import StudyError
from dpstudy.core.suggest import suggestion
from dpstudy.data.bands import check_entries
from dpstudy.evaluation import metrics
from dpstudy.evaluation.on_training import check_on_training
from dpstudy.schema.messages import check_known as _known
from dpstudy.schema.methods import hyperparameters, method_names, method_schema
from dpstudy.schema.reading import fill_defaults, schema
from dpstudy.schema.validating import validate
from dpstudy.tables.specs import check_specs, fill_specs


def load(raw: dict) -> dict:
    """A checked copy of the config `raw`, with defaults.

    Raises:
        StudyError: the first mistake: the key, what is wrong with it, what is allowed.
    """
    check_size(raw)
    config = _text_keys(raw)
    validate(config, schema("config"))
    for features in config["features"].values():
        if features["extractor"] == "timm":
            features.setdefault("scaling", "model")
    fill_defaults(config, schema("config"), schema("config"))
    for number, name in enumerate(config["evaluation"]["metrics"]):
        _known(f"evaluation.metrics[{number}]", name, metrics.names(), "metric")
    fill_specs(config)
    known = method_names()
    for name, entry in config["methods"].items():
        if entry["method"] not in known:
            close = suggestion(entry["method"], known)
            raise StudyError(
                f"methods.{name}.method: unknown method {entry['method']!r}{close}; there are {', '.join(known)}"
            )
        check_method(entry["method"])
        fill_defaults(entry, method_schema(entry["method"]), method_schema(entry["method"]))
        _validate_entry(entry, f"methods.{name}")
    _check_sources(config)
    _check_references(config)
    check_dedup(config)
    _check_numbers(config)
    _check_overrides(config)
    check_budget(config)
    if not unfold(config):
        raise StudyError("the study has no cell: no method entry reads what any feature set offers")
    check_label_kinds(config)
    check_public_points(config)
    check_black_box(config)
    check_on_training(config)
    for kind in ("datasets", "public", "backbones", "fits", "features", "methods"):
        config[kind] = {name: _sorted(entry) for name, entry in config[kind].items()}
    return narrow(config)


def _text_keys(value: Any) -> Any:
    """A copy whose keys are all text: YAML reads a key such as 10 as a number, which cannot be sorted among others."""
    if isinstance(value, dict):
        return {str(key): _text_keys(item) for key, item in value.items()}
    return [_text_keys(item) for item in value] if isinstance(value, list) else copy.deepcopy(value)


def _sorted(value: object) -> object:
    """The same value with the keys of mappings in order, so that their order in the file reruns nothing."""
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def _validate_entry(entry: dict, place: str) -> None:
    """An entry, or a cell's options, against its method's schema: as it stands, or at every end of what is tuned."""
    rules = method_schema(entry["method"])
    if "tuning" not in entry:
        validate(entry, rules, place)
        return
    validate(entry["tuning"], schema("tuning"), f"{place}.tuning")
    space = entry["tuning"]["space"]
    for name in space:
        if name not in hyperparameters(rules["properties"]):
            allowed = ", ".join(sorted(hyperparameters(rules["properties"])))
            close = suggestion(name, hyperparameters(rules["properties"]))
            raise StudyError(f"{place}.tuning.space.{name}: unknown key{close}; allowed here: {allowed}")
    check_space(space, f"{place}.tuning.space")
    if entry["tuning"]["sampler"] == "grid":
        check_grid(space, f"{place}.tuning.space")
    fixed = {key: value for key, value in entry.items() if key not in space}
    required = [name for name in rules.get("required", []) if name not in space]
    validate(fixed, {key: rules[key] for key in rules if key != "oneOf"} | {"required": required}, place)
    for corner in corners(space):
        validate(fixed | corner, rules, f"{place} (as tuned)")


def _check_sources(config: dict) -> None:
    """Each data set's keys are those that its reader takes."""
    taken = schema("config")["$defs"]["source"]["x-readers"]
    own = {key for keys in taken.values() for key in keys}
    for place, entry in sources_of(config):
        reader = entry["reader"]
        if reader == "image_table" and "table" not in entry:
            raise StudyError(f"{place}: the key 'table' is missing; it names a CSV or parquet file in `location`")
        for key in entry:
            if key in own and key not in taken[reader]:
                takes = ", ".join(taken[reader]) or "none of its own"
                raise StudyError(f"{place}.{key}: the reader {reader!r} does not take this key; it takes {takes}")
        if "location" in taken[reader] and "location" not in entry:
            raise StudyError(
                f"{place}: the key 'location' is missing; reader {reader!r} needs a folder under data_root"
            )
    check_secure(config)


def _check_references(config: dict) -> None:
    for name in config["public"]:
        if name in config["datasets"]:
            raise StudyError(f"public.{name}: a private data set has that name; choose another")
        plant = config["public"][name].get("plant")
        if plant:
            _known(f"public.{name}.plant.dataset", plant["dataset"], config["datasets"], "data set")
    check_backbones(config)
    for name, fit in config["fits"].items():
        _known(f"fits.{name}.public", fit["public"], config["public"], "public data set")
        taken = schema("config")["$defs"]["features"]["x-extractors"][fit["extractor"]]
        for key in ("mirror", "root", "deskew"):
            if key in fit and key not in taken:
                raise StudyError(f"fits.{name}.{key}: the extractor {fit['extractor']!r} does not take this key")
        check_backbone(f"fits.{name}", fit, config)
    for name, features in config["features"].items():
        _check_extractor(f"features.{name}", features)
        check_backbone(f"features.{name}", features, config)
        if features.get("weights", "random") != "random":
            check_origin(f"features.{name}", features, config)
        if "fit" in features:
            _known(f"features.{name}.fit", features["fit"], config["fits"], "fit")
            for key in ("extractor", "scaling", "backbone", "mirror", "root", "deskew"):
                if (features.get(key) or None) != (config["fits"][features["fit"]].get(key) or None):  # false: absent
                    raise StudyError(
                        f"features.{name}.{key}: {features.get(key)!r}, but the fit {features['fit']!r} was made with "
                        f"{config['fits'][features['fit']].get(key)!r}; they must be the same"
                    )
    for number, block in enumerate(config.get("cells", [])):
        for key, allowed, what in (
            ("datasets", config["datasets"], "data set"),
            ("features", config["features"], "feature set"),
            ("entries", config["methods"], "method entry"),
            ("epsilons", config["epsilons"], "epsilon"),
        ):
            for name in block.get(key, []):
                _known(f"cells[{number}].{key}", name, allowed, what)
    for name in config["audit"]["entries"]:
        _known("audit.entries", name, config["methods"], "entry")
        if config["methods"][name].get("tuning", {}).get("pay", "nothing") != "nothing":
            raise StudyError(
                f"audit.entries: {name!r} chooses its hyper-parameters in each training, and no attack plays that; "
                "name an entry of the same method with fixed ones"
            )
    for epsilon in config["audit"].get("epsilons", []):
        _known("audit.epsilons", epsilon, config["epsilons"], "epsilon")
    check_specs(study_of(config))


def _check_extractor(place: str, options: dict) -> None:
    """Each feature set's keys are those that its extractor takes."""
    extractor, rules = options["extractor"], schema("config")["$defs"]["features"]
    own = {key for keys in rules["x-extractors"].values() for key in keys}
    for key in options:
        if key in own and key not in rules["x-extractors"][extractor]:
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


def _check_numbers(config: dict) -> None:
    for name, dataset in config["datasets"].items():
        if not 0 < _number(dataset["delta"]) < 1:
            raise StudyError(f"datasets.{name}.delta: {dataset['delta']!r} must lie between 0 and 1")
        splits = dataset["splits"]
        if splits.get("test", 0) + splits["validation"] + splits.get("left_out", 0) >= 1:
            raise StudyError(f"datasets.{name}.splits: test, validation and left_out leave nothing to train on")
        if "left_out" in splits and "records" in splits:
            raise StudyError(f"datasets.{name}.splits: give either 'left_out', a fraction, or 'records', a number")
        _check_unit(f"datasets.{name}", dataset)
        check_entries(dataset.get("group_columns", []), f"datasets.{name}.group_columns")


def _check_unit(place: str, dataset: dict) -> None:
    if dataset["unit"] != "subject":
        if "per_subject" in dataset:
            raise StudyError(f"{place}.per_subject: is for unit: subject; leave it out")
        return
    dataset.setdefault("per_subject", 1)
    if dataset["reader"] == "image_table" and "subject_column" not in dataset:
        raise StudyError(f"{place}: the key 'subject_column' is missing; unit: subject needs to know whose each row is")
    for key, there in (("splits.records", "records" in dataset["splits"]), ("extra", "extra" in dataset)):
        if there:
            raise StudyError(
                f"{place}.{key}: does not go with unit: subject, whose records would push others out or belong to "
                "nobody; leave it out"
            )


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _check_overrides(config: dict) -> None:
    for number, override in enumerate(config["overrides"]):
        for key, allowed, what in (
            ("dataset", config["datasets"], "data set"),
            ("features", config["features"], "feature set"),
            ("entry", config["methods"], "method entry"),
            ("epsilon", config["epsilons"], "epsilon"),
        ):
            for name in matching(override["match"], key):
                _known(f"overrides[{number}].match.{key}", name, allowed, what)
        if "method" in override["set"]:
            raise StudyError(f"overrides[{number}].set.method: an override cannot change the method; add an entry")
        if "tuning" in override["set"]:
            validate(override["set"]["tuning"], schema("tuning") | {"required": []}, f"overrides[{number}].set.tuning")
    seen = set()
    for cell in unfold(config):
        options = cell.options(config)
        key = repr(options)
        if key not in seen:
            seen.add(key)
            _validate_entry(options, f"methods.{cell.entry} (with overrides)")
            check_start(f"methods.{cell.entry}.start", options, config)
        if "tuning" in options:
            check_tuned(cell, options, config)
        if options["sanitise"] != "full" and cell.epsilon != "inf":
            raise StudyError(
                f"overrides: {cell.path}: sanitise {options['sanitise']!r} gives no guarantee, "
                "so it fits epsilon 'inf' only"
            )


def is_private(epsilon: str) -> bool:
    """Whether an epsilon string is finite."""
    return not math.isinf(float(epsilon))
