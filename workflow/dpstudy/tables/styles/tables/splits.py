"""The number of records in each split of each data set, beside the paper's (de2022, Table 12)."""

from collections.abc import Mapping
from dataclasses import dataclass

from dpstudy.core.files import read_json
from dpstudy.tables.keys import COUNTERPARTS, PAPER
from dpstudy.tables.names import datasets_of
from dpstudy.tables.published import HYPERPARAMETERS, published_rows
from dpstudy.tables.results import Results
from dpstudy.tables.sheet import Sheet
from dpstudy.tables.style import Printed, Study, TableStyle, nothing

SPLITS = ("train", "validation", "test")
CSV_HEADER = ("dataset", "classes", *(column for split in SPLITS for column in (split, f"published_{split}")))
_PRINTED = {"train": "n_train", "validation": "n_valid", "test": "n_test"}
_WHOLE = "n_train_plus_valid"  # what a study without a validation split trains on
_TABLE = "12"


@dataclass(frozen=True)
class Line:
    """A data set: its number of classes, and the records in each split, ours and the paper's (None: it has none)."""

    dataset: str
    classes: int
    rows: Mapping[str, int | None]
    printed: Mapping[str, int | None]


def _table(name: str, spec: dict, results: Results) -> Printed:
    lines = lay_splits(name, spec, results)
    header = ("Data set", "Classes", *(head for split in SPLITS for head in (split.capitalize(), "paper")))
    texts = tuple((line.dataset, str(line.classes), *map(_text, _numbers(line))) for line in lines)
    sheet = Sheet(name, spec.get("caption", ""), header, "lr" + "rr" * len(SPLITS), (texts,), ())
    return Printed(CSV_HEADER, ((line.dataset, line.classes, *_numbers(line)) for line in lines), (sheet,))


def _numbers(line: Line) -> list[int | None]:
    """Ours and the paper's of each split."""
    return [rows for split in SPLITS for rows in (line.rows[split], line.printed[split])]


def lay_splits(name: str, spec: dict, results: Results) -> list[Line]:
    """The lines of a table, in config order: data sets, then the public sets that have a counterpart."""
    lines, private = [], datasets_of(name, spec, results.axes)
    publics = [source for source in results.splits if source not in results.axes["datasets"]]
    for dataset in [*private, *(source for source in publics if source in spec.get("counterparts", {}))]:
        manifests = {split: read_json(path) for split, path in results.splits[dataset].items()}
        rows = {split: manifests[split]["rows"] if split in manifests else None for split in SPLITS}
        called = spec.get("counterparts", {}).get(dataset, {}).get("dataset")
        printed = _printed(spec.get("paper"), called, rows["validation"] is None)
        lines.append(Line(dataset, len(manifests["train"]["classes"]), rows, printed))
    return lines


def _printed(paper: str | None, dataset: str | None, whole: bool) -> dict[str, int | None]:
    rows = published_rows(HYPERPARAMETERS, paper) if paper and dataset else []
    of = {row["parameter"]: row["value"] for row in rows if (row["table"], row["dataset"]) == (_TABLE, dataset)}
    names = _PRINTED | ({"train": _WHOLE, "validation": ""} if whole and of.get(_WHOLE, "-") != "-" else {})
    return {split: int(of[name]) if of.get(name, "-") != "-" else None for split, name in names.items()}


def _text(rows: int | None) -> str:
    return "–" if rows is None else f"{rows:,}"


def _documents(spec: Mapping, study: Study) -> dict[str, list[str]]:
    """The private sets, and the public ones that have a counterpart in a paper."""
    config = study.config
    named = {*spec.get("datasets", [spec["dataset"]] if "dataset" in spec else config["datasets"])}
    named |= {name for name in spec.get("counterparts", {}) if name in config["public"]}
    return {"splits": [name for name in (*config["datasets"], *config["public"]) if name in named]}


STYLE = TableStyle(
    keys={"paper": PAPER, "counterparts": COUNTERPARTS},
    cells=nothing,
    documents=_documents,
    table=_table,
    measures=False,
    publics=True,
)
