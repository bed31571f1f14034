"""Cells: the combinations (data set, features, method entry, epsilon) of a study."""

import copy
import itertools
from dataclasses import dataclass

from dpstudy.schema.methods import is_beyond_target, method_schema
from dpstudy.schema.reading import fill_defaults, schema

# Of each axis: its name in a cell and in an override's `match`, its key in `cells`, the section that has its names, and
# what messages call one.
AXES = (
    ("dataset", "datasets", "datasets", "data set"),
    ("features", "features", "features", "feature set"),
    ("entry", "entries", "methods", "method entry"),
    ("epsilon", "epsilons", "epsilons", "epsilon"),
)


@dataclass(frozen=True, order=True)
class Cell:
    """One cell; its path is {dataset}/{features}/{entry}/eps={epsilon}."""

    dataset: str
    features: str
    entry: str
    epsilon: str

    @property
    def path(self) -> str:
        """The cell's path below results/cells."""
        return f"{self.dataset}/{self.features}/{self.entry}/eps={self.epsilon}"

    def options(self, config: dict) -> dict:
        """The entry's hyper-parameters with this cell's overrides; later overrides win.

        What is tuned has no value here; what an override sets is not tuned.
        """
        options = copy.deepcopy(config["methods"][self.entry])
        for override in config["overrides"]:
            match = override["match"]
            if all(getattr(self, key) in matching(match, key) for key in match):
                _override(options, copy.deepcopy(override["set"]))
        if "tuning" in options:
            fill_defaults(options["tuning"], schema("tuning"), schema("tuning"))
            for name in options["tuning"].get("space", {}):
                options.pop(name, None)
        if options["sanitise"] == "full" and self.epsilon == "inf":
            options["sanitise"] = "none"
        options.setdefault("accounting", config["accounting"])
        return dict(sorted(options.items()))


def matching(match: dict, key: str) -> list[str]:
    """The names that an override's `match` lists for a key; empty where it lists none."""
    value = match.get(key, [])
    return [value] if isinstance(value, str) else value


def beyond_target(config: dict) -> list[str]:
    """Entries whose certified epsilon necessarily exceeds the target, such as those with shuffled batches.

    See `x-beyond-target` of the method's schema.
    """
    names = []
    for name, entry in config["methods"].items():
        overrides = [o for o in config["overrides"] if name in (matching(o["match"], "entry") or [name])]
        sets = ({}, *(override["set"] for override in overrides))
        if any(is_beyond_target(entry | chosen | more) for more in sets for chosen in _choices(entry)):
            names.append(name)
    return names


def _choices(entry: dict) -> list[dict]:
    """Nothing, and each choice of each hyper-parameter that an entry searches."""
    space = entry.get("tuning", {}).get("space", {})
    return [{}, *({name: choice} for name, axis in space.items() for choice in axis.get("choices", ()))]


def _override(options: dict, values: dict) -> None:
    if "tuning" in values:
        values["tuning"] = options.get("tuning", {}) | values["tuning"]
    options |= values
    space = options.get("tuning", {}).get("space", {})
    for name in values.keys() & space.keys():
        del space[name]
    if "tuning" in options and "space" in options["tuning"] and not space:
        del options["tuning"]


def unfold(config: dict) -> list[Cell]:
    """Every cell of the study, in the config's order, each once.

    Without `cells`, all combinations that fit: an entry that does not noise runs at epsilon inf only, and images as
    they are serve only methods that read them.
    """
    cells: dict[Cell, None] = {}
    for block in config.get("cells", [{}]):
        combined = itertools.product(*(block.get(key, config[section]) for _, key, section, _ in AXES))
        cells |= dict.fromkeys(cell for cell in itertools.starmap(Cell, combined) if _fits(config, cell))
    return list(cells)


def _fits(config: dict, cell: Cell) -> bool:
    entry = config["methods"][cell.entry]
    extractor = config["features"][cell.features]["extractor"]
    if extractor == "images" and not method_schema(entry["method"]).get("x-reads-images"):
        return False
    return entry.get("sanitise", "full") == "full" or cell.epsilon == "inf"
