"""Loading a study's config: defaults filled, every mistake named before anything runs."""

import copy
import math
import os
from collections.abc import Iterable
from pathlib import Path

from dpstudy.errors import StudyError
from dpstudy.study.cells import matching, unfold
from dpstudy.study.messages import explain, suggestion
from dpstudy.study.schema import fill_defaults, method_names, method_schema, schema


def load(raw: dict) -> dict:
    """A checked copy of the config `raw`, with defaults.

    Raises:
        StudyError: the first mistake: the key, what is wrong with it, what is allowed.
    """
    config = copy.deepcopy(raw)
    _validate(config, schema("config"))
    fill_defaults(config, schema("config"), schema("config"))
    for name, entry in config["methods"].items():
        if entry["method"] not in method_names():
            close = suggestion(entry["method"], method_names())
            raise StudyError(
                f"methods.{name}.method: unknown method {entry['method']!r}{close}; "
                f"there are {', '.join(method_names())}"
            )
        fill_defaults(entry, method_schema(entry["method"]), method_schema(entry["method"]))
        _validate(entry, method_schema(entry["method"]), f"methods.{name}")
    _check_sources(config)
    _check_references(config)
    _check_numbers(config)
    _check_overrides(config)
    if not unfold(config):
        raise StudyError("the study has no cell: no method entry reads what any feature set offers")
    for kind in ("datasets", "public", "backbones", "features", "methods"):
        config[kind] = {name: _sorted(entry) for name, entry in config[kind].items()}
    return config


def _sorted(value: object) -> object:
    """The same value with the keys of mappings in order, so that their order in the file reruns nothing."""
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def _validate(content: dict, rules: dict, prefix: str = "") -> None:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    errors = list(Draft202012Validator(rules).iter_errors(content))
    if not errors:
        return
    error = min(errors, key=lambda found: (len(found.absolute_path), [str(part) for part in found.absolute_path]))
    if error.validator not in ("anyOf", "enum"):
        error = best_match([error])
    raise StudyError(explain(error, prefix))


def _known(place: str, name: str, allowed: Iterable[str], what: str) -> None:
    if name not in allowed:
        listed = ", ".join(allowed) or "none is defined"
        raise StudyError(f"{place}: unknown {what} {name!r}{suggestion(name, allowed)}; there is {listed}")


def _check_sources(config: dict) -> None:
    """Each data set's keys are those that its reader takes."""
    definitions = schema("config")["$defs"]
    taken = definitions["source"]["x-readers"]
    own = {key for keys in taken.values() for key in keys}
    for kind in ("datasets", "public"):
        for name, entry in config[kind].items():
            reader = entry["reader"]
            for key in entry:
                if key in own and key not in taken[reader]:
                    takes = ", ".join(taken[reader]) or "none of its own"
                    raise StudyError(
                        f"{kind}.{name}.{key}: the reader {reader!r} does not take this key; it takes {takes}"
                    )
            if "location" in taken[reader] and "location" not in entry:
                raise StudyError(
                    f"{kind}.{name}: the key 'location' is missing; reader {reader!r} needs a folder under data_root"
                )


def _check_references(config: dict) -> None:
    for name in config["public"]:
        if name in config["datasets"]:
            raise StudyError(f"public.{name}: a private data set has that name; choose another")
        plant = config["public"][name].get("plant")
        if plant:
            _known(f"public.{name}.plant.dataset", plant["dataset"], config["datasets"], "data set")
    for name, backbone in config["backbones"].items():
        _known(f"backbones.{name}.public", backbone["public"], config["public"], "public data set")
    for name, features in config["features"].items():
        needs = {"backbone": "backbone", "precomputed": "location"}.get(features["extractor"])
        if needs and needs not in features:
            raise StudyError(f"features.{name}: the extractor {features['extractor']!r} needs the key {needs!r}")
        if needs == "backbone":
            _known(f"features.{name}.backbone", features["backbone"], config["backbones"], "backbone")
    for number, block in enumerate(config.get("cells", [])):
        for key, allowed, what in _axes(config):
            for name in block.get(key, []):
                _known(f"cells[{number}].{key}", name, allowed, what)
    for kind in ("tables", "figures"):
        for name, spec in config[kind].items():
            _check_selection(f"{kind}.{name}", spec, config)


def _axes(config: dict) -> tuple:
    return (
        ("datasets", config["datasets"], "data set"),
        ("features", config["features"], "feature set"),
        ("entries", config["methods"], "method entry"),
        ("epsilons", config["epsilons"], "epsilon"),
    )


def _check_selection(place: str, spec: dict, config: dict) -> None:
    for key, allowed, what in _axes(config):
        for name in spec.get(key, []):
            _known(f"{place}.{key}", name, allowed, what)
    rows = {f"{place}.{key}[{i}]": row for key in ("rows", "published") for i, row in enumerate(spec.get(key, []))}
    for where, row in {place: spec, **rows}.items():
        if "dataset" in row:
            _known(f"{where}.dataset", row["dataset"], config["datasets"], "data set")
    for where, row in rows.items():
        _known(f"{where}.features", row["features"], config["features"], "feature set")
        _known(f"{where}.entry", row["entry"], config["methods"], "method entry")
    if spec.get("metric", "top1") not in config["evaluation"]["metrics"]:
        raise StudyError(
            f"{place}.metric: {spec['metric']!r} is not among evaluation.metrics {config['evaluation']['metrics']}"
        )


def _check_numbers(config: dict) -> None:
    for name, dataset in config["datasets"].items():
        if not 0 < _number(dataset["delta"]) < 1:
            raise StudyError(f"datasets.{name}.delta: {dataset['delta']!r} must lie between 0 and 1")
        splits = dataset["splits"]
        if splits.get("test", 0) + splits["validation"] >= 1:
            raise StudyError(f"datasets.{name}.splits: test and validation leave nothing to train on")
        if dataset["unit"] == "subject":
            raise StudyError(
                f"datasets.{name}.unit: no method of this version bounds what a subject contributes, so a guarantee "
                "for 'subject' would be false; use 'record'"
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
    seen = set()
    for cell in unfold(config):
        options = cell.options(config)
        key = repr(options)
        if key not in seen:
            seen.add(key)
            _validate(options, method_schema(options["method"]), f"methods.{cell.entry} (with overrides)")
        if options["sanitise"] != "full" and cell.epsilon != "inf":
            raise StudyError(
                f"overrides: {cell.path}: sanitise {options['sanitise']!r} gives no guarantee, "
                "so it fits epsilon 'inf' only"
            )


def data_root(config: dict) -> str:
    """The folder of the data sets: the environment variable DPSTUDY_DATA, else the config's `data_root`."""
    return os.environ.get("DPSTUDY_DATA") or config["data_root"]


def check_locations(config: dict) -> None:
    """Refuse a data set whose folder is not there.

    Raises:
        StudyError: names the key and the path looked at.
    """
    for kind in ("datasets", "public", "features"):
        for name, entry in config[kind].items():
            if "location" in entry and "download" not in entry:
                path = Path(data_root(config)) / entry["location"]
                if not path.exists():
                    raise StudyError(
                        f"{kind}.{name}.location: {path} does not exist; put the data there, or set data_root "
                        "or DPSTUDY_DATA"
                    )


def is_private(epsilon: str) -> bool:
    """Whether an epsilon string is finite."""
    return not math.isinf(float(epsilon))
