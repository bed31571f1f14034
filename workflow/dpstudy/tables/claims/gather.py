"""Gathering the evidence for claims: printed numbers, and a study's cells by what they stand for in the paper."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from types import MappingProxyType
from typing import Any, NamedTuple

from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json, read_table
from dpstudy.evaluation.summary import cell_name, values_by_cell
from dpstudy.tables.claims import anon_smoothing_printed, de2022_printed, mehta2023_printed, tramer2021_printed
from dpstudy.tables.claims.grid import Value
from dpstudy.tables.claims.mehta2023_printed import Grid
from dpstudy.tables.claims.names import CONTROLS, METHODS, MODELS, ROLES, entries_of, roles_of, why_another
from dpstudy.tables.claims.scores import Evidence, Point, Run, Scores, Search, best_of, keeps, value_of
from dpstudy.tables.grouping import by_key, grouped
from dpstudy.tables.names import check_names, datasets_of
from dpstudy.tables.published import HYPERPARAMETERS, RESULTS, published_rows
from dpstudy.tables.results import Results
from dpstudy.tables.selecting import listed
from dpstudy.tables.trials import BY_LABEL, STATISTICS, lay_searches, pooled

PAPERS = {module.PAPER: module.PRINTED for module in (tramer2021_printed, de2022_printed, anon_smoothing_printed)}
Axes = Mapping[str, list[str]]
Pretraining = Mapping[str, str | list[str]] | None  # label -> features; None: each feature set is one
Reasons = dict[str, None]  # why cells are no evidence, in order


class Place(NamedTuple):
    """A cell in a role of its paper.

    (data set, features, entry, epsilon) of the study, the paper's name of its data set, the backbone or pre-training
    where the paper compares these, and the epochs of mehta2023's method.
    """

    cell: tuple[str, str, str, str]
    data: str
    role: str
    backbone: str = ""
    epochs: int = 1

    def run(self, n: int, accuracy: Value, *documents: Any, **more: Any) -> Run:
        """The cell's `Run` in its role, with its results."""
        _, features, entry, epsilon = self.cell
        named = f"{self.data}, {self.backbone}" if self.backbone else self.data
        run = Run(named, self.role, f"{entry}, {features}", float(epsilon), n, accuracy, *documents, **more)
        return replace(run, backbone=self.backbone, epochs=self.epochs)


def places(name: str, spec: Mapping, axes: Axes) -> Iterator[Place]:
    """The cells that a table's spec assigns to roles, in order; the study may lack some.

    Raises:
        StudyError: a role that there is not, or a name that the study does not have.
    """
    where, by_backbone = f"table {name}", PAPERS[spec["paper"]].by_backbone
    for dataset, role, features, entry in roles_of(spec):
        check_names(where, "data set", [dataset], axes["datasets"])
        check_names(where, "role", [role], ROLES[spec["paper"]])
        check_names(where, "features", [features], axes["features"])
        check_names(where, "entry", [entry], axes["entries"])
    for (dataset, role, features, entry), epsilon in itertools.product(roles_of(spec), axes["epsilons"]):
        yield Place((dataset, features, entry, epsilon), _called(spec, dataset), role, features if by_backbone else "")


def _called(spec: Mapping, dataset: str) -> str:
    """What the paper calls a data set."""
    return spec.get("counterparts", {}).get(dataset, {}).get("dataset", dataset)


def _of_methods(name: str, spec: Mapping, axes: Axes, pretraining: Pretraining) -> Iterator[Place]:
    """The cells that a spec assigns to methods, at these pre-trainings; the study may lack some."""
    where, rows = f"table {name}", entries_of(spec)
    pretraining = pretraining or {features: features for features in axes["features"]}
    pairs = [(label, features) for label, given in pretraining.items() for features in listed(given)]
    check_names(where, "features", [features for _, features in pairs], axes["features"])
    check_names(where, "method", [method for method, _, _ in rows], METHODS)
    check_names(where, "entry", [entry for _, _, entry in rows], axes["entries"])
    called = {dataset: _called(spec, dataset) for dataset in datasets_of(name, spec, axes)}
    if len(set(called.values())) < len(called):
        raise StudyError(f"{where}: counterparts: two data sets of the study stand for one of the paper's")
    epsilons = map(str, spec.get("epsilons", axes["epsilons"]))
    combinations = itertools.product(called.items(), pairs, rows, epsilons)
    for (dataset, data), (label, features), (method, epochs, entry), epsilon in combinations:
        yield Place((dataset, features, entry, epsilon), data, method, label, epochs)


def gather(name: str, spec: Mapping, results: Results) -> Evidence:
    """The evidence for judging the claims of a table's spec.

    Cells at a finite epsilon count only if their guarantee is proved at no more than that epsilon; those of CONTROLS
    count all the same, since the claims compare them at their target. Of several cells in one role, or of one method
    and number of epochs, the best counts. Of data sets with one name in the paper those of its sizes are `runs`, or the
    largest; the others are `resized`. Cells that tell another number of classes apart than the paper's data set has are
    left out.

    Args:
        name: of the table.
        spec: paper, roles, methods, pretraining, resolutions, counterparts, searches, metric; see the config's schema.

    Raises:
        StudyError: a role or method that there is not, or a name that the study does not have.
    """
    metric = spec.get("metric", "top1")
    left_out: Reasons = {}

    def read(places: Iterable[Place]) -> list[Run]:
        return _runs(places, results, metric, left_out)

    if spec["paper"] not in PAPERS:
        return replace(of_methods(name, spec, results.axes, read), left_out=tuple(left_out))
    runs = read(places(name, spec, results.axes))
    searches = _searches(name, spec, results, left_out)
    return evidence_of(spec["paper"], runs, searches, metric, tuple(left_out))


def of_methods(name: str, spec: Mapping, axes: Axes, read: Callable[[Iterable[Place]], list[Run]]) -> Evidence:
    """The evidence for claims of mehta2023, which compares methods; see `gather`.

    Args:
        name, spec: of the table that judges the claims.
        axes: the study's names.
        read: gives those of some cells that the study has, with their results.
    """

    def grid(pretraining: Pretraining) -> Grid:
        return Grid.of(read(_of_methods(name, spec, axes, pretraining)), tuple(pretraining or ()))

    rows, settings = (published_rows(path, spec["paper"]) for path in (RESULTS, HYPERPARAMETERS))
    ours = grid(spec.get("pretraining"))
    sizes = [grid({one: one for one in features}) for features in spec.get("resolutions", ())]
    return Evidence(mehta2023_printed.printed_scores(rows), ours, settings, rows, resolutions=sizes)


def evidence_of(
    name: str,
    runs: Sequence[Run],
    searches: Mapping[tuple[str, str], Search] = MappingProxyType({}),
    metric: str = "top1",
    left_out: Sequence[str] = (),
) -> Evidence:
    """The evidence from given runs; see `gather`.

    Args:
        name: of a paper with roles.
    """
    paper, rows = PAPERS[name], published_rows(RESULTS, name)
    printed, runs = paper.scores(rows), [run for run in runs if run.role in CONTROLS or keeps(run.ledger, run.epsilon)]
    sizes = {}  # the numbers of records that claims not about them are judged at
    for (dataset, data), of in by_key(runs, lambda run: (run.dataset, run.data)).items():
        found = {run.n for run in of}
        sizes[dataset] = found.intersection(paper.records.get(data, ())) or {max(found)}
    whole = [run for run in runs if run.n in sizes[run.dataset]]
    values = best_of(whole, lambda run: (run.dataset, run.role, run.epsilon))
    beside = {dataset for dataset, dataset_sizes in sizes.items() if min(dataset_sizes) >= paper.least(dataset)}
    values |= {key: value for key, value in printed.values.items() if key[1] in paper.cited and key[0] in beside}
    resized = [run for run in runs if run.n not in sizes[run.dataset]]
    ours = Scores(values, whole, searches, resized)
    return Evidence(printed, ours, published_rows(HYPERPARAMETERS, name), rows, metric, left_out)


def _runs(places: Iterable[Place], results: Results, metric: str, left_out: Reasons) -> list[Run]:
    """Those of these cells that the study has, in order. `left_out` is told why some are no evidence."""
    accuracies, runs = values_by_cell(results.summary, metric), []
    for place in places:
        cell = cell_name(*place.cell)
        if not accuracies.get(cell):
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


def _searches(name: str, spec: Mapping, results: Results, left_out: Reasons) -> dict[tuple[str, str], Search]:
    rows, searches = spec.get("searches", []), {}
    for row, laid in zip(rows, lay_searches(name, {"searches": rows}, results), strict=True):
        check_names(f"table {name}", "model", [row["label"]], MODELS)
        key = (_called(spec, row["dataset"]), row["label"])
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
