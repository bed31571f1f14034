"""The labels of methods in a study's tables, for use in figures and the report too."""

from collections import Counter
from collections.abc import Iterator, Mapping

from dpstudy.tables.styles import USUAL, table_style


def labels_of(tables: Mapping[str, Mapping]) -> dict[str, str]:
    """Method ("FEATURES/ENTRY", or "ENTRY" in tables whose rows are in every group of features) -> its label.

    It is that of the first table which has one. A label shared by two is left out.

    Args:
        tables: the config's.
    """
    labels: dict[str, str] = {}
    for spec in (spec for spec in tables.values() if table_style(spec).names):
        kind = ("entry",) if "groups" in spec else ("features", "entry")
        for row in (row for row in spec.get("rows", []) if {"label", *kind} <= row.keys()):
            key = "/".join(row[part] for part in kind)
            labels.setdefault(key, row["label"] if "epochs" not in row else f"{row['label']}, epochs: {row['epochs']}")
    counts = Counter(("/" in key, label) for key, label in labels.items())
    return {key: label for key, label in labels.items() if counts["/" in key, label] == 1}


def fill_labels(config: dict) -> None:
    """Give the lines of figures the labels of tables where they have none.

    Figures of accuracy against epsilon, which name no lines, get all that their `labels` lack.
    """
    labels = labels_of(config["tables"])
    for spec in config["figures"].values():
        if spec.get("style", USUAL["figures"]) == USUAL["figures"]:
            entries = spec.get("entries", list(config["methods"]))
            of_entries = {key: label for key, label in labels.items() if key.rpartition("/")[2] in entries}
            if of_entries:
                spec["labels"] = of_entries | spec.get("labels", {})
        for line in _lines(spec):
            key = f"{line['features']}/{line['entry']}"
            if key in labels:
                line.setdefault("label", labels[key])


def _lines(spec: Mapping) -> Iterator[dict]:
    for part in (spec, *(panel for panel in spec.get("panels", []))):
        for line in (*part.get("lines", []), *part.get("rows", [])):
            if "features" in line and "entry" in line:
                yield line
