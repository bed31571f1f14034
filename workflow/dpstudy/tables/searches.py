"""What searches for hyper-parameters found, over all their trials: how much a choice matters (tramer2021, Table 3 and
Figure 8). Values are on the validation split: a search never sees the test split."""

import os
import statistics
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_table
from dpstudy.evaluation.csv_file import write_csv
from dpstudy.evaluation.summary import cell_name
from dpstudy.tables.published import lookup
from dpstudy.tables.results import Results
from dpstudy.tables.sheet import Sheet, write_sheet

STATISTICS = ("min", "max", "median", "mad")
BY_LABEL = "label"  # what tells a search's cells apart (a normalisation), seen as one more parameter


@dataclass(frozen=True)
class Found:
    """The trials of one row, pooled over its searches.

    Attributes:
        values: of the trials that did not fail, in percent.
        failed: how many did.
        published: statistic -> printed value, where there is one.
    """

    label: str
    dataset: str
    epsilon: str
    values: tuple[float, ...]
    failed: int
    published: Mapping[str, float]

    def statistic(self, name: str) -> float:
        """One of STATISTICS; mad is the median absolute deviation from the median."""
        if name == "mad":
            middle = statistics.median(self.values)
            return statistics.median(abs(value - middle) for value in self.values)
        others: dict[str, Callable[[tuple[float, ...]], float]] = {"min": min, "max": max, "median": statistics.median}
        return others[name](self.values)


def build_search_table(
    name: str, spec: dict, results: Results, tex_path: str | os.PathLike, csv_path: str | os.PathLike
) -> None:
    """Write minimum, maximum, median and MAD over the trials of each row, as .tex and .csv.

    Raises:
        StudyError: a row whose trials all failed.
    """
    rows = lay_searches(name, spec, results)
    header = ("row", "dataset", "epsilon", "trials", "failed", *STATISTICS, *(f"published_{s}" for s in STATISTICS))
    write_csv(
        csv_path,
        header,
        (
            (row.label, row.dataset, row.epsilon, len(row.values) + row.failed, row.failed)
            + tuple(round(row.statistic(s), 4) for s in STATISTICS)
            + tuple(row.published.get(s) for s in STATISTICS)
            for row in rows
        ),
    )
    write_sheet(search_sheet(name, spec, results), tex_path)


def search_sheet(name: str, spec: dict, results: Results) -> Sheet:
    """The same as text, a block a data set."""
    rows = lay_searches(name, spec, results)
    header = ("Data set", "Model", "Trials", "Min", "Max", "Median", "MAD", "Published: min", "max", "median", "MAD")
    blocks = []
    for dataset in dict.fromkeys(row.dataset for row in rows):
        block = [row for row in rows if row.dataset == dataset]
        blocks.append(tuple(_line(row, dataset if i == 0 else "") for i, row in enumerate(block)))
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


def lay_searches(name: str, spec: dict, results: Results) -> list[Found]:
    """The rows of a table, in config order."""
    found = []
    for row in spec["searches"]:
        trials = [trial for _, trial in pooled(row, results.trials)]
        values = tuple(trial["value"] for trial in trials if trial["state"] == "complete")
        if not values:
            raise StudyError(f"table {name}: every trial of {row['label']!r} failed")
        published = {
            statistic: value.value
            for statistic in STATISTICS
            if "published" in row
            and (value := lookup({**row["published"], "statistic": statistic}, row["epsilon"]))
            and value.value is not None
        }
        failed = len(trials) - len(values)
        found.append(Found(row["label"], row["dataset"], row["epsilon"], values, failed, published))
    return found


def pooled(row: dict, paths: Mapping[str, str | os.PathLike]) -> Iterator[tuple[dict, dict]]:
    """The trials of a row's searches, each with its cell in the row: what was tried (as text), `value` and `state`."""
    for cell in row["cells"]:
        path = paths[cell_name(row["dataset"], cell["features"], cell["entry"], row["epsilon"])]
        for trial in read_table(path).to_pylist():
            yield cell, {key: value for key, value in trial.items() if key not in ("trial", "seconds")}
