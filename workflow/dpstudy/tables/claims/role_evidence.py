"""Gathering the evidence for claims of papers with roles: printed numbers, and a study's cells by role."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from types import MappingProxyType
from typing import Any, NamedTuple

from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json, read_table
from dpstudy.evaluation.summary import cell_name, values_by_cell
from dpstudy.tables.claims import anon_smoothing_printed, de2022_printed, tramer2021_printed
from dpstudy.tables.claims.grid import Value
from dpstudy.tables.claims.names import CONTROLS, MODELS, ROLES, roles_of, why_another
from dpstudy.tables.claims.scores import Evidence, Point, Run, Scores, Search, keeps, value_of
from dpstudy.tables.grouping import by_key, grouped
from dpstudy.tables.names import check_names
from dpstudy.tables.published import HYPERPARAMETERS, RESULTS, published_rows
from dpstudy.tables.results import Results
from dpstudy.tables.trials import BY_LABEL, STATISTICS, lay_searches, pooled

PAPERS = {module.PAPER: module.PRINTED for module in (tramer2021_printed, de2022_printed, anon_smoothing_printed)}


class Place(NamedTuple):
    """A cell in a role of its paper.

    (data set, features, entry, epsilon) of the study, the paper's name of its data set, and the backbone where the
    paper compares these.
    """

    cell: tuple[str, str, str, str]
    data: str
    role: str
    backbone: str = ""

    def run(self, n: int, accuracy: Value, *documents: Any, **more: Any) -> Run:
        """The cell's `Run` in its role, with its results."""
        _, features, entry, epsilon = self.cell
        named = f"{self.data}, {self.backbone}" if self.backbone else self.data
        run = Run(named, self.role, f"{entry}, {features}", float(epsilon), n, accuracy, *documents, **more)
        return replace(run, backbone=self.backbone)


def places(spec: Mapping, epsilons: Sequence[str], by_backbone: bool) -> Iterator[Place]:
    """The cells that a table's spec assigns to roles, in order; the study may lack some."""
    for (dataset, role, features, entry), epsilon in itertools.product(roles_of(spec), epsilons):
        data = spec.get("counterparts", {}).get(dataset, {}).get("dataset", dataset)
        yield Place((dataset, features, entry, epsilon), data, role, features if by_backbone else "")


def gather(name: str, spec: Mapping, results: Results) -> Evidence:
    """The evidence for judging the claims of a table's spec.

    Cells at a finite epsilon count only if their guarantee is proved at no more than that epsilon; those of CONTROLS
    count all the same, since the claims compare them at their target. Of several cells in one role the best counts. Of
    data sets with one name in the paper those of its sizes are `runs`, or the largest; the others are `resized`. Cells
    that tell another number of classes apart than the paper's data set has are left out.

    Args:
        name: of the table.
        spec: paper, roles, counterparts, searches, metric; see the config's schema.

    Raises:
        StudyError: a role that there is not, or a name that the study does not have.
    """
    left_out: dict[str, None] = {}
    runs = _runs(f"table {name}", spec, results, PAPERS[spec["paper"]].by_backbone, left_out)
    searches = _searches(name, spec, results, left_out)
    return evidence_of(spec["paper"], runs, searches, spec.get("metric", "top1"), tuple(left_out))


def evidence_of(
    name: str,
    runs: Sequence[Run],
    searches: Mapping[tuple[str, str], Search] = MappingProxyType({}),
    metric: str = "top1",
    left_out: Sequence[str] = (),
) -> Evidence:
    """The evidence from given runs; see `gather`.

    Args:
        name: of the paper.
    """
    paper, rows = PAPERS[name], published_rows(RESULTS, name)
    printed, runs = paper.scores(rows), [run for run in runs if run.role in CONTROLS or keeps(run.ledger, run.epsilon)]
    sizes = {}  # the numbers of records that claims not about them are judged at
    for dataset, data in {(run.dataset, run.data) for run in runs}:
        found = {run.n for run in runs if run.dataset == dataset}
        sizes[dataset] = found.intersection(paper.records.get(data, ())) or {max(found)}
    whole = [run for run in runs if run.n in sizes[run.dataset]]
    several = by_key(whole, lambda run: (run.dataset, run.role, run.epsilon))
    values = {key: max((run.accuracy for run in of), key=lambda value: value.number) for key, of in several.items()}
    beside = {dataset for dataset, dataset_sizes in sizes.items() if min(dataset_sizes) >= paper.least(dataset)}
    values |= {key: value for key, value in printed.values.items() if key[1] in paper.cited and key[0] in beside}
    resized = [run for run in runs if run.n not in sizes[run.dataset]]
    ours = Scores(values, whole, searches, resized)
    return Evidence(printed, ours, published_rows(HYPERPARAMETERS, name), rows, metric, tuple(left_out))


def _runs(where: str, spec: Mapping, results: Results, by_backbone: bool, left_out: dict[str, None]) -> list[Run]:
    """The cells in the spec's roles, in order; not all that it names need be cells. `left_out` is told why some are no
    evidence."""
    metric = spec.get("metric", "top1")
    accuracies, runs = values_by_cell(results.summary, metric), []
    for dataset, role, features, entry in roles_of(spec):
        check_names(where, "data set", [dataset], results.axes["datasets"])
        check_names(where, "role", [role], ROLES[spec["paper"]])
        check_names(where, "features", [features], results.axes["features"])
        check_names(where, "entry", [entry], results.axes["entries"])
    for place in places(spec, results.axes["epsilons"], by_backbone):
        cell = cell_name(*place.cell)
        if cell not in accuracies:
            continue
        ledger, metrics = results.ledger(cell), read_json(results.metrics[cell])
        if why := why_another(place.cell[0], place.data, metrics["classes"]):
            left_out[why] = None
            continue
        value = value_of(accuracies[cell], metric)
        curve = _curve(results.curves[cell], metrics, metric) if cell in results.curves else ()
        audit = read_json(results.audits[cell]) if cell in results.audits else {}
        black_box = read_json(results.black_boxes[cell]) if cell in results.black_boxes else {}
        runs.append(place.run(ledger["n"], value, metrics, ledger, curve, audit, black_box=black_box))
    return runs


def _curve(path, metrics: Mapping, metric: str) -> tuple[Point, ...]:
    rows = read_table(path, ["step", "epsilon_spent", "metric", "value"]).to_pylist()
    steps = grouped((row for row in rows if row["metric"] == metric), itemgetter("step"))
    rate, points = metrics["hyperparameters"].get("sampling_rate", 1.0), []
    for seeds in sorted(steps, key=lambda seeds: seeds[0]["step"]):
        accuracy = value_of([row["value"] for row in seeds], metric)
        points.append(Point(seeds[0]["step"] * rate, seeds[-1]["epsilon_spent"], accuracy))
    return tuple(points)


def _searches(name: str, spec: Mapping, results: Results, left_out: dict[str, None]) -> dict[tuple[str, str], Search]:
    rows, counterparts, searches = spec.get("searches", []), spec.get("counterparts", {}), {}
    for row, laid in zip(rows, lay_searches(name, {"searches": rows}, results), strict=True):
        check_names(f"table {name}", "model", [row["label"]], MODELS)
        key = (counterparts.get(row["dataset"], {}).get("dataset", row["dataset"]), row["label"])
        cells = [cell_name(row["dataset"], one["features"], one["entry"], row["epsilon"]) for one in row["cells"]]
        classes = [read_json(results.metrics[cell])["classes"] for cell in cells if cell in results.metrics]
        if why := next(filter(None, (why_another(row["dataset"], key[0], count) for count in classes)), ""):
            left_out[why] = None
            continue
        if key in searches:
            raise StudyError(f"table {name}: two searches stand for the {key[1]} model on {key[0]}; pool their cells")
        finished = [(cell, trial) for cell, trial in pooled(row, results.trials) if trial["state"] == "complete"]
        trials = [trial | {BY_LABEL: cell.get("label")} for cell, trial in finished]
        searches[key] = Search({statistic: laid.statistic(statistic) for statistic in STATISTICS}, trials, laid.failed)
    return searches
