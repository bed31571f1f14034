"""Loading a study's config: fills in defaults, and reports every mistake before anything runs."""

import copy
import math
import os
from typing import Any

from dpstudy.config.black_box_options import check_black_box
from dpstudy.config.cells import AXES, matching, unfold
from dpstudy.config.dedup_options import check_dedup
from dpstudy.config.including import INCLUDE, read_config
from dpstudy.config.label_kinds import check_averages, check_label_kinds
from dpstudy.config.narrowing import judged_papers, narrow, study_of
from dpstudy.config.new_methods import check_method
from dpstudy.config.origins import check_backbones, check_network, check_start, complete_start
from dpstudy.config.public_points import check_public_points
from dpstudy.config.secure import check_budget, check_secure
from dpstudy.config.shapes import check_shapes
from dpstudy.config.size import check_size
from dpstudy.config.source_options import check_features, check_fit, check_made_alike, check_sources
from dpstudy.config.space import check_grid, check_space, corners, default_space
from dpstudy.config.sweeps import expand
from dpstudy.config.tuned import check_calibration, check_tuned
from dpstudy.core.errors import Mistakes, StudyError
from dpstudy.core.suggest import suggestion
from dpstudy.evaluation import metrics
from dpstudy.evaluation.on_training import check_on_training
from dpstudy.provenance.code import WORKFLOW
from dpstudy.schema.messages import check_known as _known
from dpstudy.schema.methods import hyperparameters, method_names, method_schema
from dpstudy.schema.reading import fill_defaults, schema
from dpstudy.schema.spelling import as_numbers
from dpstudy.schema.validating import validate
from dpstudy.tables.specs import check_specs, fill_specs


def read_study(path: str | os.PathLike) -> dict:
    """The checked config of a study's file, included files merged; whether its data exist is not checked.

    Raises:
        StudyError: there is none, or a mistake in it.
    """
    config = read_config(path)
    try:
        return load(config)
    except StudyError as error:
        raise StudyError(f"{path}: {error}") from None


def load(raw: dict) -> dict:
    """A checked copy of the config `raw` with defaults filled in.

    Raises:
        StudyError: the mistakes: of each the key, what is wrong with it, what is allowed.
    """
    if isinstance(raw, dict) and INCLUDE in raw:
        raise StudyError(f"{INCLUDE}: is for a study in a file, whose folder the names are relative to")
    check_size(raw)
    config = as_numbers(expand(_text_keys(raw)), schema("config"))
    mistakes = Mistakes()
    with mistakes.kept():
        validate(config, schema("config"))
    entries = config.get("methods") if isinstance(config, dict) else None
    entries = entries if isinstance(entries, dict) else {}
    for name, entry in entries.items():
        if isinstance(entry, dict) and isinstance(entry.get("method"), str):
            with mistakes.kept():
                entries[name] = _filled(entry, f"methods.{name}")
    mistakes.tell()
    for features in config["features"].values():
        if features["extractor"] == "timm":
            features.setdefault("scaling", "model")
    fill_defaults(config, schema("config"), schema("config"))
    for number, name in enumerate(config["evaluation"]["metrics"]):
        with mistakes.kept():
            _known(f"evaluation.metrics[{number}]", name, metrics.names(), "metric")
    with mistakes.kept():
        fill_specs(config)
    _read_overrides(config)
    check_sources(config, mistakes)
    _check_references(config, mistakes)
    mistakes.tell()
    for group in (
        (check_secure, check_dedup, _check_specs, _check_overrides),
        (
            check_budget,
            _check_useful,
            _check_cells,
            check_label_kinds,
            check_averages,
            check_shapes,
            check_public_points,
            check_black_box,
            check_on_training,
        ),
    ):
        for check in group:
            with mistakes.kept():
                check(config)
        mistakes.tell()
    config["report"].setdefault("claims", judged_papers(config["tables"]))
    for kind in ("datasets", "public", "backbones", "fits", "features", "methods"):
        config[kind] = {name: _sorted(entry) for name, entry in config[kind].items()}
    return narrow(config)


def _filled(entry: dict, place: str) -> dict:
    """A method entry with its method's defaults, held against its schema."""
    known = method_names()
    if entry["method"] not in known:
        module = WORKFLOW / "dpstudy" / "methods" / f"{entry['method']}.py"
        if module.is_file() and "class Parameters" in module.read_text(encoding="utf-8"):
            raise StudyError(f"{place}.method: {entry['method']!r} has a module and no schema yet: run `make schemas`")
        close = suggestion(entry["method"], known)
        raise StudyError(f"{place}.method: unknown method {entry['method']!r}{close}; there are {', '.join(known)}")
    check_method(entry["method"])
    rules = method_schema(entry["method"])
    entry = _numbers(default_space(entry, rules["properties"], place), rules)
    fill_defaults(entry, rules, rules)
    _validate_entry(entry, place)
    complete_start(place, entry)
    return entry


def _read_overrides(config: dict) -> None:
    """Numbers, and choices, of overrides as the methods want them to which they apply."""
    for number, override in enumerate(config["overrides"]):
        for name in config["methods"].keys() & (matching(override["match"], "entry") or config["methods"]):
            rules = method_schema(config["methods"][name]["method"])
            override["set"] = _numbers(override["set"], {"properties": rules["properties"]})
        complete_start(f"overrides[{number}].set", override["set"])


def _check_useful(config: dict) -> None:
    """Refuse a goal that no score can have; what guessing has depends on the data (command/planning.py)."""
    goals = config.get("useful")
    if goals:
        _known("useful.metric", goals["metric"], metrics.names(), "metric")
        most = 100 if metrics.metric_of(goals["metric"]).percent else 1
        for key in ("at_least", "without_privacy"):
            if not 0 <= goals.get(key, 0) <= most:
                raise StudyError(f"useful.{key}: {goals[key]} of {goals['metric']!r}: must be from 0 to {most}")


def _check_cells(config: dict) -> None:
    if not unfold(config):
        raise StudyError("the study has no cell: no method entry reads what any feature set offers")


def _numbers(options: dict, rules: dict) -> dict:
    """Hyper-parameters, and the choices of a search over them, as numbers where the method wants numbers."""
    options = as_numbers(options, rules)
    tuning = options.get("tuning")
    space = tuning.get("space") if isinstance(tuning, dict) else None
    for name, axis in space.items() if isinstance(space, dict) else ():
        if name in rules["properties"] and isinstance(axis, dict) and isinstance(axis.get("choices"), list):
            axis["choices"] = as_numbers(axis["choices"], {"items": rules["properties"][name]})
    return options


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


def _check_references(config: dict, mistakes: Mistakes) -> None:
    """What names something else names what is there."""
    for name, public in config["public"].items():
        with mistakes.kept():
            if name in config["datasets"]:
                raise StudyError(f"public.{name}: a private data set has that name; choose another")
            if plant := public.get("plant"):
                _known(f"public.{name}.plant.dataset", plant["dataset"], config["datasets"], "data set")
    with mistakes.kept():
        check_backbones(config)
    for section, check in (("fits", check_fit), ("features", check_features), ("features", check_made_alike)):
        for name, entry in config[section].items():
            with mistakes.kept():
                check(f"{section}.{name}", entry, config)
    for number, block in enumerate(config.get("cells", [])):
        for _, key, section, what in AXES:
            for name in block.get(key, []):
                with mistakes.kept():
                    _known(f"cells[{number}].{key}", name, config[section], what)
    for name in config["audit"]["entries"]:
        with mistakes.kept():
            _known("audit.entries", name, config["methods"], "entry")
            if config["methods"][name].get("tuning", {}).get("pay", "nothing") != "nothing":
                raise StudyError(
                    f"audit.entries: {name!r} chooses its hyper-parameters in each training, and no attack plays that; "
                    "name an entry of the same method with fixed ones"
                )
    for epsilon in config["audit"].get("epsilons", []):
        with mistakes.kept():
            _known("audit.epsilons", epsilon, config["epsilons"], "epsilon")


def _check_specs(config: dict) -> None:
    check_specs(study_of(config))


def _check_overrides(config: dict) -> None:
    for number, override in enumerate(config["overrides"]):
        for key, _, section, what in AXES:
            for name in matching(override["match"], key):
                _known(f"overrides[{number}].match.{key}", name, config[section], what)
        if "method" in override["set"]:
            raise StudyError(f"overrides[{number}].set.method: an override cannot change the method; add an entry")
        if "tuning" in override["set"]:
            validate(override["set"]["tuning"], schema("tuning") | {"required": []}, f"overrides[{number}].set.tuning")
    seen = set()
    for cell in unfold(config):
        options = cell.options(config)
        if repr(options) not in seen:
            seen.add(repr(options))
            _validate_entry(options, f"methods.{cell.entry} (with overrides)")
            check_start(f"methods.{cell.entry}.start", options, config)
            check_network(f"methods.{cell.entry}", options)
        if "calibration" in options or options.get("thresholds"):
            check_calibration(cell.entry, options, cell.dataset, config["datasets"][cell.dataset])
        if "tuning" in options:
            check_tuned(cell, options, config)
        if options["sanitise"] != "full" and cell.epsilon != "inf":
            raise StudyError(
                f"overrides: {cell.path}: sanitise {options['sanitise']!r} gives no guarantee, "
                "so it fits epsilon 'inf' only"
            )


def is_private(epsilon: str) -> bool:
    """Whether an epsilon string is a finite number."""
    return not math.isinf(float(epsilon))
