"""A metric on each subgroup of the test split, and the gap between the best and the worst, for tables and figures."""

from collections.abc import Iterator
from dataclasses import dataclass

from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json
from dpstudy.evaluation.aggregate import mean_interval, mean_median_std
from dpstudy.evaluation.groups import gap
from dpstudy.evaluation.summary import cell_name
from dpstudy.tables.intervals import joined
from dpstudy.tables.names import datasets_of
from dpstudy.tables.results import Results

CSV_HEADER = (
    "dataset", "features", "entry", "epsilon", "column", "group", "n", "metric", "mean", "std", "low", "high", "seeds",
)  # fmt: skip
WHOLE, GAP = "", "gap"


@dataclass(frozen=True)
class Score:
    """A metric on one subgroup in one cell: mean and standard deviation over seeds, and the interval of the mean.

    `mean` and `std` are None where the group has too few records with, or without, a label for the metric, or all have.
    `group`: WHOLE for the whole split, on the labels that its groups are compared on; GAP for how far the best group
    is above the worst, in each seed.
    """

    place: tuple[str, str, str, str]
    group: str
    n: int | None
    mean: float | None
    std: float | None
    low: float | None
    high: float | None
    seeds: int


def csv_rows(scores: list[Score], column: str, metric: str) -> Iterator[tuple]:
    """The scores as CSV lines with the columns of `CSV_HEADER`."""
    return ((*s.place, column, s.group, s.n, metric, s.mean, s.std, s.low, s.high, s.seeds) for s in scores)


def lay_disparities(name: str, spec: dict, results: Results, kind: str = "table") -> list[Score]:
    """The scores of a table or figure (`kind`), in the order of its rows, epsilons and groups.

    They are of all records alone where no group is large enough.

    Args:
        spec: rows (features and entry), column (of the data set's table, or `label`), metric, epsilons, dataset.

    Raises:
        StudyError: a data set that the study does not have, or no cell with such a metric.
    """
    where, metric, column = f"{kind} {name}", spec.get("metric", "top1"), spec["column"]
    dataset = datasets_of(name, spec, results.axes, kind)[0]
    epsilons = spec.get("epsilons", results.axes["epsilons"])
    scores: list[Score] = []
    for row in spec["rows"]:
        for epsilon in epsilons:
            place = (dataset, row["features"], row["entry"], epsilon)
            path = results.metrics.get(cell_name(*place))
            if path is not None:
                document = read_json(path)
                scores += _of_cell(place, document["seeds"], column, metric)
                if metric in document.get("undefined", ()):
                    scores.append(Score(place, WHOLE, None, None, None, None, None, len(document["seeds"])))
    if not scores:
        raise StudyError(f"{where}: no cell has {metric!r}; name it in evaluation.metrics")
    return scores


def _of_cell(place: tuple[str, str, str, str], seeds: list[dict], column: str, metric: str) -> Iterator[Score]:
    prefix = f"{column}="
    groups = [
        {name.removeprefix(prefix): entry for name, entry in seed.get("groups", {}).items() if name.startswith(prefix)}
        for seed in seeds
    ]
    if metric not in seeds[0]:
        return
    whole = [of_seed.pop(WHOLE, {}) for of_seed in groups]
    yield _score(place, WHOLE, None, whole if metric in whole[0] else seeds, metric)
    compared = [name for name, entry in groups[0].items() if metric in entry]
    for name, entry in groups[0].items():
        if name in compared:
            yield _score(place, name, entry["n"], [of_seed[name] for of_seed in groups], metric)
        else:
            yield Score(place, name, entry["n"], None, None, None, None, len(groups))
    gaps = [ends[0] for of_seed in groups if (ends := gap({name: of_seed[name][metric] for name in compared}))]
    if gaps:
        mean, _, std = mean_median_std(gaps)
        yield Score(place, GAP, None, mean, std, None, None, len(gaps))


def _score(place, group: str, n: int | None, entries: list[dict], metric: str) -> Score:
    values = [entry[metric] for entry in entries]
    mean, _, std = mean_median_std(values)
    low, high = joined(values, mean_interval(entries, metric), metric) or (None, None)
    return Score(place, group, n, mean, std, low, high, len(entries))
