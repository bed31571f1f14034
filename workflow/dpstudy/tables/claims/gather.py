"""Gathering the evidence for claims of mehta2023: printed numbers, and accuracies of a study's cells."""

import itertools
from collections.abc import Iterator, Mapping, Sequence

from dpstudy.core.errors import StudyError
from dpstudy.core.files import read_json
from dpstudy.evaluation.summary import cell_name, values_by_cell
from dpstudy.tables.claims.finding import Cell, Evidence
from dpstudy.tables.claims.grid import Grid, Place, Value
from dpstudy.tables.claims.names import CLASSES, METHODS, entries_of, why_another
from dpstudy.tables.claims.scores import keeps, value_of
from dpstudy.tables.names import check_names, datasets_of
from dpstudy.tables.published import HYPERPARAMETERS, RESULTS, published_rows
from dpstudy.tables.results import Results
from dpstudy.tables.selecting import listed

PRETRAININGS = ("ImageNet-1k", "ImageNet-21k", "JFT-3B")  # from the least to the most
# Training records and classes of the paper's private data sets.
_RECORDS = {"CIFAR-10": 50_000, "CIFAR-100": 50_000, "ImageNet-1k": 1_281_167}
PRIVATE_SETS = {name: (records, CLASSES[name]) for name, records in _RECORDS.items()}
_DETAILED = ("2", "3", "4")
Places = Mapping[str, str | list[str]] | None  # label of a place -> its features; None: each feature set is one
Reasons = dict[str, None]  # why cells are no evidence, in order


def printed_grid(rows: list[dict[str, str]]) -> Grid:
    """The accuracies printed in mehta2023's Tables 2-4; a cell without a number is printed as at most 20 %."""
    values = {}
    for row in rows:
        if row["table"] in _DETAILED:
            key = (Place(row["dataset"], row["pretraining"]), row["method"], int(row["epochs"]), float(row["epsilon"]))
            values[key] = Value(float(row["value"])) if row["value"] else Value(None, None, at_most=20.0)
    return Grid(values, PRETRAININGS, {name: classes for name, (_, classes) in PRIVATE_SETS.items()})


def gather(name: str, spec: Mapping, results: Results) -> Evidence:
    """The evidence for judging the claims of a table's spec.

    Of several entries for one method and number of epochs, the better counts. Cells at a finite epsilon count only
    if their guarantee is proved at no more than that epsilon. Cells that tell another number of classes apart than the
    paper's data set has are left out.

    Args:
        name: of the table.
        spec: paper, methods, pretraining, resolutions, counterparts; see the config's schema.

    Raises:
        StudyError: a method that the paper does not have, or a name that the study does not have.
    """
    rows, settings = (published_rows(path, spec["paper"]) for path in (RESULTS, HYPERPARAMETERS))
    cells: list[Cell] = []
    left_out: Reasons = {}
    ours = _grid(name, spec, results, spec.get("pretraining"), cells, left_out)
    several = [{one: one for one in features} for features in spec.get("resolutions", ())]
    sizes = [_grid(name, spec, results, places, [], left_out) for places in several]
    return Evidence(printed_grid(rows), ours, rows, settings, cells, tuple(left_out), sizes)


def of_accuracies(
    name: str, spec: Mapping, axes: Mapping[str, list[str]], known: Mapping[str, Value], cells: Sequence[Cell]
) -> Evidence:
    """The evidence from given accuracies alone.

    Args:
        name, spec: of the table that judges the claims, as for `gather`.
        axes: the study's names.
        known: accuracies by the cells' names.
        cells: what claims about settings get.
    """

    def grid(places: Places) -> Grid:
        values: dict[tuple, Value] = {}
        for key, path in _wanted(name, spec, axes, places):
            if path in known and (key not in values or values[key].number < known[path].number):
                values[key] = known[path]
        return Grid(values, tuple(places or ()), CLASSES)

    rows, settings = (published_rows(path, spec["paper"]) for path in (RESULTS, HYPERPARAMETERS))
    sizes = [grid({one: one for one in features}) for features in spec.get("resolutions", ())]
    return Evidence(printed_grid(rows), grid(spec.get("pretraining")), rows, settings, cells, (), sizes)


def _grid(name: str, spec: Mapping, results: Results, places: Places, cells: list[Cell], left_out: Reasons) -> Grid:
    """The accuracies of the study's cells.

    Args:
        cells: takes those that count.
        left_out: takes why others are no evidence.
    """
    values: dict[tuple, Value] = {}
    classes: dict[str, int] = {}
    runs = values_by_cell(results.summary, "top1")
    for key, path in _wanted(name, spec, results.axes, places):
        if path not in runs:
            continue
        place, method, epochs, epsilon = key
        metrics, ledger = read_json(results.metrics[path]), results.ledger(path)
        if why := why_another(metrics["dataset"], place.dataset, metrics["classes"]):
            left_out[why] = None
            continue
        cells.append(Cell(method, epochs, epsilon, ledger, metrics["hyperparameters"]))
        classes[place.dataset] = metrics["classes"]
        value = value_of(runs[path])
        if keeps(ledger, epsilon) and (key not in values or values[key].number < value.number):
            values[key] = value
    return Grid(values, tuple(places or ()), classes)


def _wanted(name: str, spec: Mapping, axes: Mapping[str, list[str]], places: Places) -> Iterator[tuple[tuple, str]]:
    """(place, method, epochs, epsilon) and cell name, for all that the spec names; not all need be cells."""
    where, rows = f"table {name}", entries_of(spec)
    places = places or {features: features for features in axes["features"]}
    pairs = [(label, features) for label, given in places.items() for features in listed(given)]
    check_names(where, "features", [features for _, features in pairs], axes["features"])
    check_names(where, "method", [method for method, _, _ in rows], list(METHODS))
    check_names(where, "entry", [entry for _, _, entry in rows], axes["entries"])
    datasets, counterparts = datasets_of(name, spec, axes), spec.get("counterparts", {})
    called = {dataset: counterparts.get(dataset, {}).get("dataset", dataset) for dataset in datasets}
    if len(set(called.values())) < len(called):
        raise StudyError(f"{where}: counterparts: two data sets of the study stand for one of the paper's")
    epsilons = [str(epsilon) for epsilon in spec.get("epsilons", axes["epsilons"])]
    combinations = itertools.product(called.items(), pairs, rows, epsilons)
    for (dataset, paper_name), (label, features), (method, epochs, entry), epsilon in combinations:
        key = (Place(paper_name, label), method, epochs, float(epsilon))
        yield key, cell_name(dataset, features, entry, epsilon)
