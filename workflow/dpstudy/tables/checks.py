"""Checks of table and figure specs, made before anything runs, that their schemas cannot express."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from dpstudy.core.errors import StudyError
from dpstudy.data.bands import group_names
from dpstudy.schema.messages import check_known
from dpstudy.tables.published import combine, find_all, lookup
from dpstudy.tables.selecting import AXES, cell_path, listed
from dpstudy.tables.style import Study, Style, crossed_cells

# Lists in a spec that name data sets, entries and the like, and what they call them: key -> in the config, in messages.
_PARTS = ("groups", "rows", "columns", "models", "controls")
_KINDS = {
    "dataset": ("datasets", "data set"),
    "features": ("features", "feature set"),
    "entry": ("methods", "method entry"),
    "independent": ("methods", "method entry"),
    "epsilon": ("epsilons", "epsilon"),
}


def check_selected(where: str, spec: dict, style: Style, study: Study) -> None:
    """Check that the names in a spec are the study's, and that the study measures its metric.

    Raises:
        StudyError: the first that is not.
    """
    config = study.config
    for one, several in AXES.items():
        axis, what = _KINDS[one]
        if (several, "cited" in spec) != ("epsilons", True):  # papers have epsilons of their own
            for name in listed(spec.get(several, [])):
                check_known(f"{where}.{several}", name, config[axis], what)
    parts = {f"{where}.{kind}[{i}]": part for kind in _PARTS for i, part in enumerate(spec.get(kind, []))}
    for at, part in {where: {key: spec[key] for key in ("dataset",) if key in spec}, **parts}.items():
        for key in [key for key in _KINDS if key in part]:
            axis, what = _KINDS[key]
            check_known(f"{at}.{key}", part[key], config[axis], what)
    for dataset in spec.get("counterparts", {}):
        counted = {**config["datasets"], **(config["public"] if style.publics else {})}
        check_known(f"{where}.counterparts", dataset, counted, "data set")
    metrics = config["evaluation"]["metrics"]
    if style.measures and spec["metric"] not in metrics:
        raise StudyError(f"{where}.metric: {spec['metric']!r} is not among evaluation.metrics {metrics}")


def check_rows(where: str, spec: dict, study: Study) -> None:
    """Check that rows, or the groups that they are in, name their features.

    Raises:
        StudyError: neither does, or both do.
    """
    for number, row in enumerate(spec.get("rows", [])):
        at = f"{where}.rows[{number}]"
        if "features" not in row and "groups" not in spec:
            raise StudyError(f"{at}: the key 'features' is missing; only rows of a table with groups go without it")
        if "features" in row and "groups" in spec:
            raise StudyError(f"{at}.features: the table's groups name the features; leave it out")


def check_cell(where: str, part: Mapping, study: Study) -> str:
    """The name of the cell in a part of a spec, which the study must have.

    Raises:
        StudyError: the study does not have it.
    """
    if (name := cell_path(part)) not in study.cells:
        raise StudyError(f"{where}: the study has no cell {name}")
    return name


def check_any(where: str, cells: Sequence[str]) -> None:
    """Check that the study has at least one of a spec's cells.

    Raises:
        StudyError: none is.
    """
    if not cells:
        raise StudyError(f"{where}: the study has none of its cells; 'cells' leaves them out")


def check_crossed(where: str, spec: dict, study: Study) -> None:
    """As `check_any` of the cells of all combinations of a spec's rows and columns."""
    check_any(where, crossed_cells(spec, study))


def check_column(where: str, spec: dict, study: Study) -> None:
    """Check that the grouping of a spec exists, as far as the config tells; user-supplied features may add some.

    Raises:
        StudyError: it is not.
    """
    config = study.config
    dataset = spec.get("datasets", [spec["dataset"]] if "dataset" in spec else list(config["datasets"]))[0]
    if spec["column"] == "label":
        if not config["evaluation"]["per_label"]:
            raise StudyError(f"{where}.column: 'label' needs evaluation.per_label: true")
    elif (names := group_names(config["datasets"][dataset])) is not None:
        check_known(f"{where}.column", spec["column"], [*names, "label"], "group column")


def check_searches(where: str, spec: dict, study: Study, by: Sequence[str] = ()) -> None:
    """Check that the study runs each search, over a list of choices for each hyper-parameter in `by`.

    Raises:
        StudyError: the first that is not, or a metric that searches do not look at.
    """
    first = study.config["evaluation"]["metrics"][0]
    if "searches" in spec and spec["metric"] != first:
        raise StudyError(
            f"{where}.metric: {spec['metric']!r} is not what the searches look at, which is the first of "
            f"evaluation.metrics, {first!r}"
        )
    for number, row in enumerate(spec.get("searches", [])):
        for index, part in enumerate(row["cells"]):
            at = f"{where}.searches[{number}].cells[{index}]"
            cell = check_cell(at, row | part, study)
            tuning = study.cells[cell].options(study.config).get("tuning", {"pay": ""})
            if tuning.get("pay", "nothing") != "nothing":
                raise StudyError(f"{at}: the cell {cell} has no search beforehand, whose trials could be shown")
            for name in by:
                if "choices" not in tuning["space"].get(name, {}):
                    raise StudyError(f"{at}: the search of {cell} does not choose {name!r} from a list")


Parts = Callable[[dict, str], Iterator[tuple[dict, ...]]]


def parts_of(spec: dict, dataset: str) -> Iterator[tuple[dict, ...]]:
    """The combinations of a spec's parts (groups, rows, columns) for which a published number is looked up."""
    groups, rows = (
        [part for part in spec.get(key, []) if part.get("dataset", dataset) == dataset] for key in ("groups", "rows")
    )
    if "columns" in spec:
        yield from ((row, column) for row in rows for column in spec["columns"])
    elif groups and rows:
        yield from ((group, row) for group in groups for row in rows)
    else:
        yield from ((part,) for part in (*(groups or rows), *spec.get("cited", ())))


def check_published(
    where: str, spec: dict, study: Study, parts: Parts = parts_of, find: Callable[[dict, str], object] = lookup
) -> None:
    """Check that each filter on published numbers finds its names, and at most one number per cell.

    Raises:
        StudyError: the first that does not.
    """
    config = study.config
    for dataset in spec.get("datasets", [spec["dataset"]] if "dataset" in spec else config["datasets"]):
        for several in parts(spec, dataset):
            filters = combine(spec, dataset, *several)
            if filters is None:
                continue
            epsilons = next(([part["epsilon"]] for part in several if "epsilon" in part), None)
            for epsilon in epsilons or spec.get("epsilons", config["epsilons"]):
                try:
                    find({"metric": spec["metric"], **filters}, epsilon)
                except StudyError as error:
                    raise StudyError(f"{where}: {error}") from None


def check_cited(where: str, spec: dict, study: Study) -> None:
    """Check cited numbers: one data set, distinct labels, a number each, and epsilons of the study or their own.

    Raises:
        StudyError: the first that is not so.
    """
    if "cited" not in spec:
        return
    if "dataset" not in spec:
        raise StudyError(f"{where}: the key 'dataset' is missing; numbers that are 'cited' are of one data set")
    epsilons = spec.get("epsilons", study.config["epsilons"])
    printed = set(study.config["epsilons"])
    for number, row in enumerate(spec["cited"]):
        at = f"{where}.cited[{number}]"
        check_label(at, row, spec["cited"][:number], "row")
        filters = combine(spec, spec["dataset"], row)
        try:
            printed_here = {e for e in epsilons if filters and find_all({"metric": spec["metric"], **filters}, e)}
        except StudyError as error:
            raise StudyError(f"{at}: {error}") from None
        if not printed_here:
            raise StudyError(f"{at}: nothing is printed for it at the epsilons {', '.join(epsilons)}")
        printed |= printed_here
    for epsilon in epsilons:
        if epsilon not in printed:
            raise StudyError(f"{where}.epsilons: {epsilon!r} is not the study's, and nothing cited is printed at it")


def check_labels(place: str, spec: Mapping, study: Study) -> None:
    """Check that labels are for entries, or for entries on feature sets, that the study has.

    Raises:
        StudyError: the one that is not.
    """
    for key in spec.get("labels", {}):
        features, _, entry = key.rpartition("/")
        check_known(f"{place}.labels", entry, study.config["methods"], "method entry")
        if features:
            check_known(f"{place}.labels", features, study.config["features"], "feature set")


def check_label(where: str, row: Mapping, others: Sequence[Mapping], what: str) -> None:
    """Check that a cited number's label differs from those of earlier rows or lines (`what`).

    Raises:
        StudyError: it has not.
    """
    if row["label"] in [other.get("label", other.get("entry")) for other in others]:
        raise StudyError(f"{where}.label: {row['label']!r} is another {what}'s already")
