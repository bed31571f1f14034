"""Checks that methods suit their data sets: several labels per record, averaged records, class weights."""

from collections.abc import Mapping

from dpstudy.config.cells import unfold
from dpstudy.core.errors import StudyError
from dpstudy.schema.methods import method_schema

_WEIGHED = {
    "contributions": ("average the records of a person", "set it to sum"),
    "class_weights": ("weigh records", "leave them out"),
}


def check_label_kinds(config: dict) -> None:
    """Refuse single-label methods on data sets whose records may have several labels or none (`x-one-label`).

    Args:
        config: checked and filled in.

    Raises:
        StudyError: the entry, the data set, and what to set.
    """
    several = {name for name, options in config["datasets"].items() if _several(options)}
    for cell in unfold(config) if several else ():
        if cell.dataset not in several:
            continue
        options = cell.options(config)
        rules = method_schema(options["method"]).get("x-one-label")
        if rules and any(_holds(condition, options) for condition in rules["where"]):
            named = ", ".join(f"{key}: {value}" for key, value in rules["where"][0].items())
            raise StudyError(
                f"methods.{cell.entry}: {options['method']}{' with ' + named if named else ''} takes one label a "
                f"record, and those of data set {cell.dataset!r} may bear several or none; {rules['instead']}"
            )


def check_averages(config: dict) -> None:
    """Refuse averaged records or class weights for methods and searches that do not support them (`x-averages`).

    Raises:
        StudyError: the entry, the data set, and what to set.
    """
    asked = {
        name: "contributions" if options.get("contributions") == "average" else "class_weights"
        for name, options in config["datasets"].items()
        if options.get("contributions") == "average" or "class_weights" in options
    }
    for cell in unfold(config) if asked else ():
        if cell.dataset not in asked:
            continue
        options = cell.options(config)
        what = "" if method_schema(options["method"]).get("x-averages") else options["method"]
        if "records" in options.get("tuning", {}):
            what = "a search on some of the records"
        if what:
            does, instead = _WEIGHED[asked[cell.dataset]]
            raise StudyError(
                f"methods.{cell.entry}: {what} does not {does}, as datasets.{cell.dataset}.{asked[cell.dataset]} asks; "
                f"{instead}, or leave the entry out for this data set"
            )


def _several(dataset: Mapping) -> bool:
    return dataset.get("positives", 1) > 1 or len(dataset.get("label_columns", ())) > 1


def _holds(condition: Mapping, options: Mapping) -> bool:
    """Whether the options are as a condition says; a null is of what is absent, and what is searched has no value."""
    searched = options.get("tuning", {}).get("space", {})
    return all(key not in searched and options.get(key) == value for key, value in condition.items())
