"""How evenly a model serves subgroups: a metric on each group of the test split, and the gap between best and worst."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json
from dpstudy.evaluation.aggregate import mean_interval, mean_median_std
from dpstudy.evaluation.csv_file import write_csv
from dpstudy.evaluation.groups import gap
from dpstudy.evaluation.judge import AREAS, FEWEST, LABEL
from dpstudy.evaluation.metrics import METRICS
from dpstudy.evaluation.summary import cell_name
from dpstudy.tables.intervals import joined
from dpstudy.tables.names import check_names, datasets_of, marked
from dpstudy.tables.numbers import usual_decimals
from dpstudy.tables.results import Results
from dpstudy.tables.sheet import Sheet, write_sheet

CSV_HEADER = (
    "dataset", "features", "entry", "epsilon", "column", "group", "n", "metric", "mean", "std", "low", "high", "seeds",
)  # fmt: skip
WHOLE, GAP = "", "gap"
_NAMES = {WHOLE: "all", GAP: "best less worst"}


@dataclass(frozen=True)
class Score:
    """A metric on one group in one cell: mean and standard deviation over seeds, and the interval of the mean.

    `mean` and `std` are None where the group has too few records with, or without, a label for the metric.
    `group`: WHOLE for the whole split; GAP for how far the best group is above the worst, in each seed.
    """

    place: tuple[str, str, str, str]
    group: str
    n: int | None
    mean: float | None
    std: float | None
    low: float | None
    high: float | None
    seeds: int


def build_disparity_table(
    name: str, spec: dict, results: Results, tex_path: str | os.PathLike, csv_path: str | os.PathLike
) -> None:
    """Write the scores as .tex and .csv. Raises: as `lay_disparities`."""
    scores, metric = lay_disparities(name, spec, results), spec.get("metric", "top1")
    write_csv(csv_path, CSV_HEADER, csv_rows(scores, spec["column"], metric))
    write_sheet(_sheet(name, spec, scores, results.axes), tex_path)


def disparity_sheet(name: str, spec: dict, results: Results) -> Sheet:
    """The same as text."""
    return _sheet(name, spec, lay_disparities(name, spec, results), results.axes)


def csv_rows(scores: list[Score], column: str, metric: str) -> Iterator[tuple]:
    """The scores as lines under `CSV_HEADER`."""
    return ((*s.place, column, s.group, s.n, metric, s.mean, s.std, s.low, s.high, s.seeds) for s in scores)


def lay_disparities(name: str, spec: dict, results: Results, kind: str = "table") -> list[Score]:
    """The scores of a table or figure (`kind`), row by row of its config, then by epsilon and group.

    Args:
        spec: rows (features and entry), column (of the data set's table, or `label`), metric, epsilons, dataset.

    Raises:
        StudyError: a name that the study does not have, or no cell with such groups.
    """
    where, metric, column = f"{kind} {name}", spec.get("metric", "top1"), spec["column"]
    dataset = datasets_of(name, spec, results.axes, kind)[0]
    epsilons = spec.get("epsilons", results.axes["epsilons"])
    check_names(where, "epsilon", epsilons, results.axes["epsilons"])
    found: list[Score] = []
    for row in spec["rows"]:
        check_names(where, "features", [row["features"]], results.axes["features"])
        check_names(where, "entry", [row["entry"]], results.axes["entries"])
        for epsilon in epsilons:
            place = (dataset, row["features"], row["entry"], epsilon)
            path = results.metrics.get(cell_name(*place))
            if path is not None:
                found += _of_cell(place, read_json(path)["seeds"], column, metric)
    if not found:
        raise StudyError(
            f"{where}: no cell has {metric!r} by {column!r}; the data set must name the column in `group_columns`, or "
            "evaluation.per_label be true for `label`, and groups have evaluation.smallest_group records"
        )
    return found


def _of_cell(place: tuple[str, str, str, str], seeds: list[dict], column: str, metric: str) -> Iterator[Score]:
    prefix = f"{column}="
    groups = [
        {name.removeprefix(prefix): entry for name, entry in seed.get("groups", {}).items() if name.startswith(prefix)}
        for seed in seeds
    ]
    if not groups[0] or metric not in seeds[0]:
        return
    yield _score(place, WHOLE, None, seeds, metric)
    told = [name for name, entry in groups[0].items() if metric in entry]
    for name, entry in groups[0].items():
        if name in told:
            yield _score(place, name, entry["n"], [own[name] for own in groups], metric)
        else:
            yield Score(place, name, entry["n"], None, None, None, None, len(groups))
    gaps = [found[0] for own in groups if (found := gap({name: own[name][metric] for name in told}))]
    if gaps:
        mean, _, std = mean_median_std(gaps)
        yield Score(place, GAP, None, mean, std, None, None, len(gaps))


def _score(place, group: str, n: int | None, entries: list[dict], metric: str) -> Score:
    values = [entry[metric] for entry in entries]
    mean, _, std = mean_median_std(values)
    low, high = joined(values, mean_interval(entries, metric), metric) or (None, None)
    return Score(place, group, n, mean, std, low, high, len(entries))


def _sheet(name: str, spec: dict, scores: list[Score], axes: Mapping) -> Sheet:
    metric = spec.get("metric", "top1")
    epsilons = list(dict.fromkeys(score.place[3] for score in scores))
    values = {(score.place, score.group): score for score in scores}
    digits = usual_decimals((score.std for score in scores), metric)
    blocks = []
    for row in spec["rows"]:
        mine = [score for score in scores if score.place[1:3] == (row["features"], row["entry"])]
        if not mine:
            continue
        groups = dict.fromkeys(score.group for score in mine)
        block: list[tuple[str, ...]] = []
        for group in groups:
            size = next((str(score.n) for score in mine if score.group == group and score.n is not None), "")
            label = marked(row.get("label", row["entry"]), row["entry"], axes) if not block else ""
            shown = [values.get(((*mine[0].place[:3], epsilon), group)) for epsilon in epsilons]
            block.append((label, _NAMES.get(group, group), size, *_texts(shown, digits)))
        blocks.append(tuple(block))
    header = ("Method", spec["column"].replace("_", " "), "n", *(f"ε = {'∞' if e == 'inf' else e}" for e in epsilons))
    counted = "the group's test records" + (", those that bear the label" if spec["column"] == LABEL else "")
    what = METRICS[metric][0].upper() + METRICS[metric][1:]
    notes: tuple[str, ...] = (
        f"{what} on the test split, without noise that would protect its records: means over seeds, with "
        f"95 % intervals over seeds and test records together where there are any. n: {counted}.",
    )
    if metric in AREAS and spec["column"] != LABEL:
        notes += (
            f"Groups are compared on the same labels: those that {FEWEST} records of each bear and as many do not; "
            "all: on every label.",
        )
    if any(score.mean is None for score in scores):
        notes += ("–: too few of the group's records bear a label, or too few do not.",)
    return Sheet(name, spec.get("caption", ""), header, "llr" + "r" * len(epsilons), tuple(blocks), notes)


def _texts(scores: list[Score | None], digits: int) -> list[str]:
    texts = []
    for score in scores:
        if score is None or score.mean is None:
            texts.append("–")
            continue
        text = f"{score.mean:.{digits}f}"
        if score.low is not None:
            text += f" ({score.low:.{digits}f}–{score.high:.{digits}f})"
        texts.append(text)
    return texts
