"""Cells: the (data set, features, method entry, epsilon) combinations that a study unfolds into."""

import copy
import itertools
from dataclasses import dataclass

from dpstudy.study.schema import method_schema


@dataclass(frozen=True, order=True)
class Cell:
    """One cell; its path is {dataset}/{features}/{entry}/eps={epsilon}."""

    dataset: str
    features: str
    entry: str
    epsilon: str

    @property
    def path(self) -> str:
        """Where the cell lies under results/cells."""
        return f"{self.dataset}/{self.features}/{self.entry}/eps={self.epsilon}"

    def options(self, config: dict) -> dict:
        """The entry's hyper-parameters with this cell's overrides; later overrides win."""
        options = copy.deepcopy(config["methods"][self.entry])
        for override in config["overrides"]:
            if _applies(override["match"], self):
                options |= copy.deepcopy(override["set"])
        if options["sanitise"] == "full" and self.epsilon == "inf":
            options["sanitise"] = "none"
        options.setdefault("accounting", config["accounting"])
        return dict(sorted(options.items()))


def matching(match: dict, key: str) -> list[str]:
    """The names that an override's `match` lists for a key; empty where it lists none."""
    value = match.get(key, [])
    return [value] if isinstance(value, str) else value


def _applies(match: dict, cell: Cell) -> bool:
    return all(getattr(cell, key) in matching(match, key) for key in match)


def unfold(config: dict) -> list[Cell]:
    """Every cell of the study, in the config's order, each once.

    Without `cells`, all combinations that fit: an entry that does not noise runs at epsilon inf only, and a method
    that reads features runs on extracted ones.
    """
    blocks = config.get("cells") or [{}]
    found: dict[Cell, None] = {}
    for block in blocks:
        axes = itertools.product(
            block.get("datasets", config["datasets"]),
            block.get("features", config["features"]),
            block.get("entries", config["methods"]),
            block.get("epsilons", config["epsilons"]),
        )
        for cell in itertools.starmap(Cell, axes):
            if _fits(config, cell):
                found[cell] = None
    return list(found)


def _fits(config: dict, cell: Cell) -> bool:
    entry = config["methods"][cell.entry]
    extractor = config["features"][cell.features]["extractor"]
    reads = method_schema(entry["method"])["x-reads"]
    if (reads == "images") != (extractor == "images"):
        return False
    return entry.get("sanitise", "full") == "full" or cell.epsilon == "inf"
