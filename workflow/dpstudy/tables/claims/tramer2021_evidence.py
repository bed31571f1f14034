"""What claims of tramer2021 are judged by: its printed numbers, and a study's cells in the roles of its experiments."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dpstudy.errors import StudyError
from dpstudy.evaluation.aggregate import mean_median_std
from dpstudy.evaluation.summary import cell_name, values_by_cell
from dpstudy.files import read_json, read_table
from dpstudy.tables.claims.grid import Value
from dpstudy.tables.claims.names import CONTROLS, MODELS, ROLES, roles_of
from dpstudy.tables.claims.scores import Point, Run, Scores, Search
from dpstudy.tables.layout import check_names
from dpstudy.tables.published import HYPERPARAMETERS, RESULTS, published_rows
from dpstudy.tables.results import Results
from dpstudy.tables.searches import STATISTICS, lay_searches, pooled

PAPER = "tramer2021"
PRIOR = "prior"  # the role of other authors' numbers, which Table 1 cites
RECORDS = {"MNIST": 60_000, "Fashion-MNIST": 60_000, "CIFAR-10": 50_000}  # that the paper trains on
_PRINTED_RUNS = 5  # whose standard deviation stands behind the ±
_MODELS = {"linear": "linear", "ScatterNet+CNN": "scatter-cnn", "CNN": "cnn"}
_FIGURE_5 = {"CIFAR-100 (ResNeXt-29)": "transfer-cifar100", "ImageNet (unlabeled, SimCLRv2)": "transfer-imagenet"}
_TABLE_2 = {"no": "unnormalised", "group": "group-normalised", "data": "data-normalised"}


@dataclass(frozen=True)
class Evidence:
    """All that claims are judged by: the paper's accuracies and ours, and its rows of hyperparameters.csv."""

    printed: Scores
    ours: Scores
    hyperparameters: Sequence[Mapping[str, str]] = ()


def gather(name: str, spec: Mapping, results: Results) -> Evidence:
    """All that the claims of a table's spec are judged by.

    Cells at a finite epsilon count only if their guarantee is proved at no more than that epsilon; those of CONTROLS
    count all the same, since the claims compare them at their target. Of several cells in one role the best counts. Of
    data sets with one name in the paper those of its size are `runs`, or the largest; the others are `resized`.

    Args:
        name: of the table.
        spec: roles, counterparts, searches; see the config's schema.

    Raises:
        StudyError: a role that there is not, or a name that the study does not have.
    """
    printed = printed_scores(published_rows(RESULTS, PAPER))
    runs = _runs(f"table {name}", spec, results)
    sizes = {
        dataset: _size(dataset, {run.n for run in runs if run.dataset == dataset})
        for dataset in {r.dataset for r in runs}
    }
    whole = [run for run in runs if run.n == sizes[run.dataset]]
    values: dict[tuple[str, str, float], Value] = {}
    for run in whole:
        key = (run.dataset, run.role, run.epsilon)
        if key not in values or values[key].mean < run.accuracy.mean:
            values[key] = run.accuracy
    values |= {key: value for key, value in printed.values.items() if key[1] == PRIOR and key[0] in sizes}
    resized = [run for run in runs if run.n != sizes[run.dataset]]
    ours = Scores(values, whole, _searches(name, spec, results), resized)
    return Evidence(printed, ours, published_rows(HYPERPARAMETERS, PAPER))


def printed_scores(rows: Sequence[Mapping[str, str]]) -> Scores:
    """The accuracies of Tables 1, 2, 11, 19 and 20 and of section 5.2, and the searches of Table 3.

    The paper's own runs shuffle (as its Table 19 shows), so that what Table 1 does not print at epsilon 3 is taken from
    there; a printed ± over five runs gives a standard error.
    """
    values: dict[tuple[str, str, float], Value] = {}
    searches: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows:
        model = _MODELS.get(row["model"])
        if row["table"] == "3":
            searches.setdefault((row["dataset"], model), {})[row["statistic"]] = float(row["value"])
            continue
        error = float(row["std"]) / math.sqrt(_PRINTED_RUNS) if row["std"] else 0.0
        for role in _printed_roles(row, model):
            values.setdefault((row["dataset"], role, float(row["epsilon"])), Value(float(row["value"]), error))
    return Scores(values, (), {key: Search(statistics) for key, statistics in searches.items()})


def _printed_roles(row: Mapping[str, str], model: str | None) -> tuple[str, ...]:
    """The roles that a printed number is in; a later number never replaces an earlier one."""
    table, method = row["table"], row["method"]
    if table == "1":
        return (PRIOR,) if row["source"] else (model,)
    if table == "2":
        normalisation = method.removeprefix("non-private (").split()[0]
        return (_TABLE_2[normalisation],) if normalisation in _TABLE_2 else ()
    if table == "11":
        return (f"nonprivate-{model}",)
    if table == "19":
        return (f"{model}-shuffle", model) if "shuffle" in method else (f"{model}-poisson",)
    if table == "20":
        return ("cnn-smaller",) if "168K" in row["model"] else ("cnn",)
    if table == "figure 5":
        role = _FIGURE_5[row["pretraining"]]
        return (f"nonprivate-{role}",) if method == "non-private" else (role,)
    return ()


def _size(dataset: str, found: set[int]) -> int:
    """The number of records that claims not about it are judged at."""
    return RECORDS[dataset] if RECORDS.get(dataset) in found else max(found)


def _counts(run: Run) -> bool:
    if math.isinf(run.epsilon) or run.role in CONTROLS:
        return True
    return run.ledger["guarantee"] == "proved" and run.ledger["epsilon"] <= run.epsilon


def _runs(where: str, spec: Mapping, results: Results) -> list[Run]:
    """The cells in the spec's roles, in order; not all that it names need be cells."""
    counterparts, accuracies = spec.get("counterparts", {}), values_by_cell(results.summary, "top1")
    found = []
    for (dataset, role, features, entry), epsilon in itertools.product(roles_of(spec), results.axes["epsilons"]):
        check_names(where, "data set", [dataset], results.axes["datasets"])
        check_names(where, "role", [role], ROLES)
        check_names(where, "features", [features], results.axes["features"])
        check_names(where, "entry", [entry], results.axes["entries"])
        cell = cell_name(dataset, features, entry, epsilon)
        if cell not in accuracies:
            continue
        mean, _, std = mean_median_std(accuracies[cell])
        count = len(accuracies[cell])
        ledger, metrics = results.ledger(cell), read_json(results.metrics[cell])
        value = Value(mean, std / math.sqrt(count) if count > 1 else None)
        name = counterparts.get(dataset, {}).get("dataset", dataset)
        label = f"{entry}, {features}"
        curve = _curve(results.curves[cell], metrics) if cell in results.curves else ()
        run = Run(name, role, label, float(epsilon), ledger["n"], value, metrics, ledger, curve)
        if _counts(run):
            found.append(run)
    return found


def _curve(path, metrics: Mapping) -> tuple[Point, ...]:
    values: dict[int, list[float]] = {}
    spent: dict[int, float | None] = {}
    for row in read_table(path, ["step", "epsilon_spent", "metric", "value"]).to_pylist():
        if row["metric"] == "top1":
            values.setdefault(row["step"], []).append(row["value"])
            spent[row["step"]] = row["epsilon_spent"]
    rate, points = metrics["hyperparameters"].get("sampling_rate", 1.0), []
    for step, accuracies in sorted(values.items()):
        mean, _, std = mean_median_std(accuracies)
        error = std / math.sqrt(len(accuracies)) if len(accuracies) > 1 else None
        points.append(Point(step * rate, spent[step], Value(mean, error)))
    return tuple(points)


def _searches(name: str, spec: Mapping, results: Results) -> dict[tuple[str, str], Search]:
    rows = spec.get("searches", [])
    counterparts, found = spec.get("counterparts", {}), {}
    for row, laid in zip(rows, lay_searches(name, {"searches": rows}, results), strict=True):
        check_names(f"table {name}", "model", [row["label"]], MODELS)
        key = (counterparts.get(row["dataset"], {}).get("dataset", row["dataset"]), row["label"])
        if key in found:
            raise StudyError(f"table {name}: two searches stand for the {key[1]} model on {key[0]}; pool their cells")
        trials = [trial for _, trial in pooled(row, results.trials) if trial["state"] == "complete"]
        found[key] = Search({statistic: laid.statistic(statistic) for statistic in STATISTICS}, trials)
    return found


def curve_value(run: Run, epsilon: float) -> Value | None:
    """The accuracy of a run when it had spent at most `epsilon`; None before its first point."""
    within = [point for point in run.curve if point.spent is not None and point.spent <= epsilon]
    return within[-1].accuracy if within else None
