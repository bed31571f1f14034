"""Checks of cells that read public points: the projected public features of their feature set's fit."""

from collections.abc import Mapping

from dpstudy.config.cells import unfold
from dpstudy.core.errors import StudyError
from dpstudy.schema.methods import method_schema


def reads_public(options: Mapping) -> bool:
    """Whether an entry reads public points.

    It does if one of the keys in its method's `x-reads-public` is not at its default, or is searched.
    """
    rules = method_schema(options["method"])
    searched = options.get("tuning", {}).get("space", {})
    defaults = {key: rules["properties"][key]["default"] for key in rules.get("x-reads-public", ())}
    return any(key in searched or options.get(key, default) != default for key, default in defaults.items())


def check_public_points(config: dict) -> None:
    """Check that every cell that reads public points has a feature set with a fit.

    Raises:
        StudyError: one has none.
    """
    may = {name for name, entry in config["methods"].items() if "x-reads-public" in method_schema(entry["method"])}
    for cell in unfold(config) if may else ():
        if cell.entry not in may or "fit" in config["features"][cell.features]:
            continue
        options = cell.options(config)
        if reads_public(options):
            keys = " and ".join(method_schema(options["method"])["x-reads-public"])
            raise StudyError(
                f"methods.{cell.entry}: {keys} read public points, which the feature set {cell.features!r} has not; "
                f"give features.{cell.features} a fit on a public set, or leave the two apart in `cells`"
            )
