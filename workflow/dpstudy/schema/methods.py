"""The schemas of method entries, and facts about options that they contain."""

import copy
import functools

from dpstudy.core.entry_points import entry_points
from dpstudy.core.errors import StudyError
from dpstudy.schema.hyperparameters import schema_of
from dpstudy.schema.reading import FOLDER, schema

# Keys of every method's entries, none of which is a hyper-parameter; None: as another schema has it.
_OF_ALL: dict[str, dict | None] = {
    "sanitise": {
        "enum": ["full", "clip", "none"],
        "default": "full",
        "description": "clip: no noise; none: neither. Both only at epsilon inf.",
    },
    "accounting": None,
    "tuned_on": {"type": "string", "default": "nothing"},
    "not_accounted": {
        "type": "array",
        "items": {"type": "string", "minLength": 1},
        "description": "What its ledgers leave out, or should say of its settings: a sentence each.",
    },
    "tuning": None,
    "calibration": {
        "anyOf": [{"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, {"enum": ["auto", "test"]}],
        "description": "The share of mu^2 that makes probabilities of scores; auto: 0.02, or what few units "
        "take, none where 0.3 is too little; test: nothing, on half of the test records, where these are public. "
        "Without it scores rank.",
    },
    "thresholds": {
        "anyOf": [{"type": "boolean"}, {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 0.5}],
        "description": "Of a calibrated entry: the share of mu^2 for counts of which a threshold is read off for "
        "any specificity, and what is found there; true: 0.01, or what few units take, none where 0.2 is too "
        "little.",
    },
    "shared_noise": {
        "type": "boolean",
        "default": False,
        "description": "A control without a guarantee: one noise vector for all classes and steps.",
    },
}


def method_names() -> list[str]:
    """Every method that has a schema, including those of other packages (entry points "dpstudy.methods")."""
    shipped = [path.name.removesuffix(".schema.yaml") for path in (FOLDER / "methods").glob("*.schema.yaml")]
    return sorted({*shipped, *(entry.name for entry in entry_points())})


@functools.cache
def method_schema(name: str) -> dict:
    """The schema of one method's entries, with the keys common to all entries.

    That of a method of another package is made of its module's Parameters and ENTRIES, if it has no SCHEMA.
    """
    shipped = (FOLDER / "methods" / f"{name}.schema.yaml").exists()
    content = copy.deepcopy(schema(f"methods/{name}") if shipped else _of_package(name))
    _check_method_schema(name, content)
    content["properties"] |= copy.deepcopy(_OF_ALL) | {
        "accounting": {"enum": schema("config")["properties"]["accounting"]["enum"]},
        "tuning": schema("tuning"),
    }
    return content


def _of_package(name: str) -> dict:
    """The schema of a method of another package.

    Raises:
        StudyError: several packages have it, its module cannot be imported, or says nothing of its hyper-parameters.
    """
    entries = [entry for entry in entry_points() if entry.name == name]
    if len({entry.value for entry in entries}) > 1:
        raise StudyError(f"method {name!r}: several packages have it, {', '.join(entry.value for entry in entries)}")
    try:
        module = entries[0].load()
        return module.SCHEMA if hasattr(module, "SCHEMA") else schema_of(name, module.Parameters, module.ENTRIES)
    except Exception as error:  # importing a user's module may raise anything
        raise StudyError(
            f"method {name!r}: {entries[0].value} must be a module with Parameters and ENTRIES; "
            f"{type(error).__name__}: {error}"
        ) from error


# Benchmarks that a reader of their own format reads, by the reader: their names, as a method's `x-chosen-on` has them.
BENCHMARKS = {"cifar": ("CIFAR-10", "CIFAR-100"), "idx": ("MNIST", "Fashion-MNIST", "EMNIST letters")}


def _check_method_schema(name: str, content: dict) -> None:
    """What rules ask of a method's schema is there.

    Raises:
        StudyError: it is not.
    """
    if not isinstance(content, dict):
        raise StudyError(f"schema of method {name!r}: must be a mapping of keywords (docs/add-a-method.md)")
    for key, allowed in (("x-reads", ("features", "statistics")), ("x-curve", (True, False))):
        if content.get(key) not in allowed:
            raise StudyError(
                f"schema of method {name!r}: `{key}` is {content.get(key)!r}; must be "
                f"{' or '.join(str(value).lower() for value in allowed)} (docs/add-a-method.md)"
            )
    if content["x-reads"] == "statistics" and not isinstance(content.get("x-per-class"), dict):
        raise StudyError(
            f"schema of method {name!r}: `x-reads: statistics` needs `x-per-class`, the options with which sums of "
            "each class are made too (docs/add-a-method.md)"
        )
    known = [benchmark for names in BENCHMARKS.values() for benchmark in names]
    if unknown := set(content.get("x-chosen-on", [])).difference(known):
        raise StudyError(
            f"schema of method {name!r}: `x-chosen-on` has {', '.join(map(repr, sorted(unknown)))}; must be of "
            f"{', '.join(known)} (docs/add-a-method.md)"
        )
    named = content.get("properties", {}).get("method") == {"const": name}
    if not named or content.get("additionalProperties") is not False:
        raise StudyError(
            f"schema of method {name!r}: must have `additionalProperties: false`, and `method: {{const: {name}}}` "
            "among its properties (docs/add-a-method.md)"
        )


def hyperparameters(options: dict) -> dict:
    """The hyper-parameters among a cell's options."""
    return {key: value for key, value in options.items() if key != "method" and key not in _OF_ALL}


def deciding(options: dict) -> dict:
    """A cell's options without those that change memory and speed alone (`x-free-to-change` of its method's schema)."""
    free = method_schema(options["method"]).get("x-free-to-change", ())
    return {key: value for key, value in options.items() if key not in free}


def is_beyond_target(options: dict) -> bool:
    """Whether the certified epsilon of these options necessarily exceeds the target."""
    rules = method_schema(options["method"])
    properties, beyond = rules["properties"], rules.get("x-beyond-target", {})
    return any(options.get(key, properties[key].get("default")) == value for key, value in beyond.items())
