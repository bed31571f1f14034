"""Results of hyper-parameter searches over all their trials: the effect of the choice (tramer2021, Table 3).

Minimum, maximum, median and median absolute deviation, on the validation split: a search never sees the test split.
"""

from dpstudy.tables.checks import check_searches
from dpstudy.tables.grouping import by_key
from dpstudy.tables.keys import SEARCHES
from dpstudy.tables.results import Results
from dpstudy.tables.selecting import searched
from dpstudy.tables.sheet import Sheet
from dpstudy.tables.style import Printed, TableStyle
from dpstudy.tables.trials import STATISTICS, Found, lay_searches

CSV_HEADER = ("row", "dataset", "epsilon", "trials", "failed", *STATISTICS, *(f"published_{s}" for s in STATISTICS))


def _table(name: str, spec: dict, results: Results) -> Printed:
    searches = lay_searches(name, spec, results)
    return Printed(CSV_HEADER, map(_csv_row, searches), (_sheet(name, spec, searches),))


def _csv_row(row: Found) -> tuple:
    ours, published = (round(row.statistic(s), 4) for s in STATISTICS), map(row.published.get, STATISTICS)
    return (row.label, row.dataset, row.epsilon, len(row.values) + row.failed, row.failed, *ours, *published)


def _sheet(name: str, spec: dict, rows: list[Found]) -> Sheet:
    """A block a data set."""
    header = ("Data set", "Model", "Trials", "Min", "Max", "Median", "MAD", "Published: min", "max", "median", "MAD")
    by_dataset = by_key(rows, lambda row: row.dataset)
    blocks = [
        tuple(_line(row, "" if number else dataset) for number, row in enumerate(block))
        for dataset, block in by_dataset.items()
    ]
    notes = [
        "Ours: accuracy (%) on the validation split, which is all that a search sees; published: on the test split. No "
        "ledger covers a search that is not paid for, nor what it shows of validation records."
    ]
    if failed := sum(row.failed for row in rows):
        notes.append(f"{failed} trials failed and are left out.")
    return Sheet(name, spec.get("caption", ""), header, "ll" + "r" * 9, tuple(blocks), tuple(notes))


def _line(row: Found, dataset: str) -> tuple[str, ...]:
    ours = (f"{row.statistic(s):.1f}" for s in STATISTICS)
    printed = (f"{row.published[s]:.1f}" if s in row.published else "" for s in STATISTICS)
    return (dataset, row.label, str(len(row.values)), *ours, *printed)


STYLE = TableStyle(
    keys={"searches": SEARCHES | {"description": "A row each; the trials of all its cells count."}},
    needs=("searches",),
    check=check_searches,
    cells=lambda spec, study: searched(spec),
    documents=("trials",),
    table=_table,
)
