"""JSON schemas of keys that specs of several styles share."""

from collections.abc import Mapping

from dpstudy.schema.reading import schema

TEXT = {"type": "string"}
NAMES = {"$ref": "#/$defs/names"}
ONE_OR_MORE = {"$ref": "#/$defs/one_or_more"}
EPSILON = {"$ref": "#/$defs/epsilon"}


def several(items: dict, description: str = "") -> dict:
    """The schema of a non-empty list."""
    return {"type": "array", "minItems": 1, "items": items} | ({"description": description} if description else {})


def mapping(required: tuple[str, ...], **properties: dict) -> dict:
    """The schema of a mapping with exactly these keys."""
    return {"type": "object", "additionalProperties": False, "required": list(required), "properties": properties}


def by_name(values: dict, description: str = "", fewest: int = 1) -> dict:
    """The schema of a mapping from names to values of one schema."""
    told = {"description": description} if description else {}
    return {"type": "object", "minProperties": fewest, "additionalProperties": values} | told


EPSILONS = several(EPSILON)
PUBLISHED = by_name(TEXT, "Filters on workflow/published/results.csv: {column: value}.")
COUNTERPARTS = by_name(
    PUBLISHED, "What the paper has for our data sets: {data set: filters}. A data set that is not here has none.", 0
)
CITED = several(
    mapping(("label", "published"), label=TEXT, published=PUBLISHED),
    "Numbers of a paper alone, such as those of works that it cites, of one data set; the table or figure may name "
    "epsilons that the study does not have.",
)
GROUPS = several(
    mapping(("features",), dataset=TEXT, features=TEXT, label=TEXT, published=PUBLISHED),
    "Kinds of features, such as pre-trainings, each of one data set or (without `dataset`) of all.",
)
SEARCHES = several(
    mapping(
        ("label", "dataset", "epsilon", "cells"),
        label=TEXT,
        dataset=TEXT,
        epsilon=EPSILON,
        published=PUBLISHED,
        cells=several(mapping(("features", "entry"), features=TEXT, entry=TEXT, label=TEXT)),
    ),
    "Searches for hyper-parameters, each over one or more cells whose trials are put together; a cell's label tells it "
    "from the others (its normalisation).",
)
PAPER = {"enum": ["mehta2023", "tramer2021", "de2022", "anon_smoothing"]}
COLUMN = TEXT | {
    "description": "what test records are grouped by: one of the data set's group columns, or label; each: a table or "
    "figure for each of them, `{column}` in its caption or title standing for the column"
}
LABELS = by_name(TEXT, "Entry, or features/entry: what the legend calls it; where absent, what the tables do.", 0)
LINE = {"features": TEXT, "entry": TEXT, "epsilon": EPSILON, "label": TEXT}  # of a figure, cell by cell
_ROW: dict[str, dict] = {
    "dataset": TEXT,
    "features": TEXT,
    "entry": TEXT,
    "epsilon": EPSILON,
    "label": TEXT,
    "epochs": {"type": "integer", "minimum": 1, "description": "Passes over the data, printed beside the label."},
    "published": PUBLISHED,
}


def row_schema(*names: str, required: tuple[str, ...] = ("features", "entry")) -> dict:
    """The schema of a list of rows, with some of the keys that rows can have."""
    return several(mapping(required, **{name: _ROW[name] for name in names}))


# Of tables laid out by groups of features.
GROUPED = {
    "groups": GROUPS,
    "rows": row_schema("dataset", "features", "entry", "label", "epochs", "published", required=("entry",)),
    "published": PUBLISHED,
    "counterparts": COUNTERPARTS,
}
COMMON: dict[str, dict[str, dict]] = {
    "tables": {
        "style": TEXT,
        "caption": TEXT,
        "dataset": TEXT,
        "datasets": NAMES,
        "epsilons": EPSILONS,
        "metric": TEXT | {"default": "top1"},
        "statistic": {"enum": ["mean", "median"], "default": "mean"},
    },
    "figures": {"style": TEXT, "title": TEXT, "metric": TEXT | {"default": "top1"}},
}


def rules(kind: str, keys: Mapping[str, dict]) -> dict:
    """The schema of a whole spec."""
    properties = COMMON[kind] | dict(keys)
    return mapping((), **properties) | {"$defs": schema("config")["$defs"]}
