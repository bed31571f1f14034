"""Phase I of black-box audits: the settings tried, and the distances between losses (de2022, Table 8)."""

import statistics
from collections.abc import Iterable, Sequence

from dpstudy.core.files import read_json
from dpstudy.evaluation.summary import cell_name
from dpstudy.tables.attacked import DOCUMENTS, Attacked, lay_membership
from dpstudy.tables.grouping import grouped
from dpstudy.tables.keys import PAPER, row_schema
from dpstudy.tables.published import HYPERPARAMETERS, published_rows
from dpstudy.tables.results import Results
from dpstudy.tables.sheet import Sheet
from dpstudy.tables.style import Printed, TableStyle

_TRIED = ("canary", "learning_rate", "clipping_norm", "steps")
CSV_HEADER = ("dataset", "features", "entry", "epsilon", "records", "batch_size", *_TRIED, "distance", "chosen")
_PRINTED = ("z", "learning_rate", "clipping_norm", "num_updates", "batch_size")  # of Table 8
_HEADER = ("|D|", "z", "Learning rate", "C", "T", "B")
_TABLE = "8"


def _table(name: str, spec: dict, results: Results) -> Printed:
    blocks = lay_membership(name, spec, results)
    rows = (line for block in blocks for cell in block for line in _lines(cell, results))
    return Printed(CSV_HEADER, rows, (_sheet(name, spec, blocks, results),))


def _lines(cell: Attacked, results: Results) -> Iterable[tuple]:
    for tried in cell.found["tried"]:
        setting = [tried.get(key, "") for key in _TRIED]
        same = all(tried.get(key) == cell.found["chosen"].get(key) for key in _TRIED)
        yield (*cell.place, cell.found["records"], _batch_size(cell, results), *setting, tried["distance"], int(same))


def _batch_size(cell: Attacked, results: Results):
    return read_json(results.metrics[cell_name(*cell.place)])["hyperparameters"].get("batch_size", "")


def _tried(block: Sequence[Attacked], results: Results) -> tuple[tuple[str, ...], str]:
    """The settings tried for one row of cells, and the mean distances between losses with and without each canary."""
    every = [tried for cell in block for tried in cell.found["tried"]]
    sets = [dict.fromkeys(tried[key] for tried in every if key in tried) for key in _TRIED]
    batches = dict.fromkeys(_batch_size(cell, results) for cell in block)
    grid = (", ".join(_text(value) for value in values) for values in (*sets, batches))
    by_canary = grouped(every, lambda tried: tried["canary"])
    means = [(of[0]["canary"], statistics.mean(tried["distance"] for tried in of)) for of in by_canary]
    distances = ", ".join(f"{canary} {mean:.2f}" for canary, mean in means)
    return (block[0].label, *grid), f"|D| = {block[0].label}: {distances}"


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _sheet(name: str, spec: dict, blocks: list[list[Attacked]], results: Results) -> Sheet:
    grids, distances = zip(*(_tried(block, results) for block in blocks), strict=True)
    rows = [grids]
    if paper := spec.get("paper"):
        rows.append(tuple(_printed(paper)))
    note = "Total variation distance between Gaussians fitted to the losses, mean over settings and ε. "
    note += f"{'; '.join(distances)}."
    return Sheet(name, spec.get("caption", ""), _HEADER, "l" + "l" * len(_PRINTED), tuple(rows), (note,))


def _printed(paper: str) -> list[tuple[str, ...]]:
    """The paper's grid, a line for each |D|: what it prints of both counts for either."""
    rows = [row for row in published_rows(HYPERPARAMETERS, paper) if row["table"] == _TABLE]
    named = [row["dataset"].partition("(")[2].rstrip(")") for row in rows]
    sizes = dict.fromkeys(size for size in named if " and " not in size)
    lines = []
    for size in sizes:
        of = {row["parameter"]: row["value"].strip("{}") for row in rows if size in row["dataset"]}
        lines.append((f"paper, {size}", *(of.get(name, "–") for name in _PRINTED)))
    return lines


STYLE = TableStyle(
    keys={"rows": row_schema("dataset", "features", "entry", "label"), "paper": PAPER},
    needs=("rows",),
    documents=DOCUMENTS,
    table=_table,
    measures=False,
)
