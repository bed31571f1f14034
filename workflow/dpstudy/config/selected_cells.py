"""The cells that tables and figures are made of: each line is one of the study, and each layout has some."""

from collections.abc import Iterable, Mapping

from dpstudy.config.cells import Cell, unfold
from dpstudy.core.errors import StudyError
from dpstudy.data.bands import group_names
from dpstudy.schema.messages import check_known
from dpstudy.schema.methods import method_schema
from dpstudy.schema.reading import schema


def check_lines(place: str, spec: dict, config: dict) -> None:
    """Every line of a curve is a cell of the study, of a method with steps; a line by size is one of each data set.

    Raises:
        StudyError: the first that is not.
    """
    if "panels" not in spec and "lines" not in spec:
        return
    cells = {cell.path for cell in unfold(config)}
    coloured = _coloured(spec)
    for number, line in enumerate(spec.get("lines", [])):
        for dataset in spec["datasets"]:
            path = Cell(dataset, line["features"], line["entry"], line["epsilon"]).path
            if path not in cells:
                raise StudyError(f"{place}.lines[{number}]: the study has no cell {path}")
    for number, panel in enumerate(spec.get("panels", [])):
        for index, line in enumerate(panel.get("lines", [])):
            where = f"{place}.panels[{number}].lines[{index}]"
            path = Cell(line["dataset"], line["features"], line["entry"], line["epsilon"]).path
            if path not in cells:
                raise StudyError(f"{where}: the study has no cell {path}")
            if not method_schema(config["methods"][line["entry"]]["method"]).get("x-curve"):
                raise StudyError(f"{where}: the entry {line['entry']!r} has no steps, hence no curve")
            if "like" in line:
                check_known(f"{where}.like", line["like"], coloured, "line with a colour of its own")


def _coloured(spec: dict) -> list[str]:
    """The labels of curves that are drawn in a colour of their own."""
    lines = [line for panel in spec.get("panels", []) for line in panel.get("lines", [])]
    borrowed = {line.get("label", line["entry"]) for line in lines if "like" in line}
    return [label for line in lines if (label := line.get("label", line["entry"])) not in borrowed]


def series_cells(line: Mapping) -> list[Cell]:
    """The cells of one line of a figure of settings."""
    pairs = [(part["features"], part["entry"]) for part in line.get("cells", [])]
    pairs += [(line["features"], entry) for entry in line.get("entries", [])]
    return [Cell(line["dataset"], *pair, line["epsilon"]) for pair in pairs]


def check_series(place: str, spec: dict, config: dict) -> None:
    """Every line of a figure of settings names cells in one of two ways, and what it draws of a metric is measured.

    Raises:
        StudyError: the first that is not.
    """
    if "series" not in spec:
        return
    cells = {cell.path for cell in unfold(config)}
    for number, line in enumerate(spec["series"]):
        if ("cells" in line, "features" in line, "entries" in line) not in ((True, False, False), (False, True, True)):
            raise StudyError(f"{place}.series[{number}]: give it 'features' and 'entries', or 'cells' that say their x")
        if ("cells" in line) != ("cells" in spec["series"][0]):
            raise StudyError(f"{place}.series[{number}]: some series have 'cells' that say their x; give them to all")
        paths = [cell.path for cell in series_cells(line)]
        for path in paths:
            if path not in cells:
                raise StudyError(f"{place}.series[{number}]: the study has no cell {path}")
            if paths.count(path) > 1:
                raise StudyError(f"{place}.series[{number}]: names the cell {path} twice")
    stated = "cells" in spec["series"][0]
    if stated and len({panel["x"] for panel in spec["panels"]}) > 1:
        raise StudyError(f"{place}.panels: the cells state one x, so give all panels the same words for it")
    known = schema("config")["properties"]["evaluation"]["properties"]["metrics"]["items"]["enum"]
    measured = config["evaluation"]["metrics"]
    for number, panel in enumerate(spec["panels"]):
        for axis in ("y",) if stated else ("x", "y"):
            if panel[axis] in known and panel[axis] not in measured:
                raise StudyError(
                    f"{place}.panels[{number}].{axis}: {panel[axis]!r} is not among evaluation.metrics {measured}"
                )


def check_compared(place: str, spec: dict, config: dict) -> None:
    """What a table side by side, or a table or figure by subgroup, compares.

    Raises:
        StudyError: a key that it would not look at, a column that no group is made by, or none of its cells is there.
    """
    datasets = spec.get("datasets", [spec["dataset"]] if "dataset" in spec else list(config["datasets"]))
    if spec["style"] == "side_by_side":
        for key in ("datasets", "epsilons"):
            if key in spec:
                raise StudyError(f"{place}.{key}: the style 'side_by_side' has one 'dataset', and an 'epsilon' a row")
        rows, columns = spec["rows"], spec["columns"]
        places = [(column["features"], row["entry"], row["epsilon"]) for row in rows for column in columns]
    elif spec["style"] == "disparity":
        _check_column(f"{place}.column", spec["column"], config["datasets"][datasets[0]], config["evaluation"])
        epsilons = spec.get("epsilons", config["epsilons"])
        places = [(row["features"], row["entry"], epsilon) for row in spec["rows"] for epsilon in epsilons]
    else:
        return
    _check_any(place, [Cell(datasets[0], *part) for part in places], config)


def _check_column(place: str, column: str, dataset: dict, evaluation: dict) -> None:
    """What is grouped by is there, as far as the config tells: features that you bring name groups of their own."""
    if column == "label":
        if not evaluation["per_label"]:
            raise StudyError(f"{place}: 'label' needs evaluation.per_label: true")
    elif (names := group_names(dataset)) is not None:
        check_known(place, column, [*names, "label"], "group column")


def _check_any(place: str, cells: Iterable[Cell], config: dict) -> None:
    if not {*cells} & {*unfold(config)}:
        raise StudyError(f"{place}: the study has none of its cells; 'cells' leaves them out")


def check_neighbours(place: str, spec: dict, config: dict) -> None:
    """A figure of neighbours is drawn from features that the study extracts.

    Raises:
        StudyError: images as they are, or features that no cell of the data set has.
    """
    if spec["style"] != "neighbours":
        return
    dataset, features = spec["dataset"], spec["features"]
    if config["features"][features]["extractor"] == "images":
        raise StudyError(
            f"{place}.features: {features!r} leaves images as they are (extractor 'images'); distances are measured "
            "between features, so name a feature set of another extractor"
        )
    if not any((cell.dataset, cell.features) == (dataset, features) for cell in unfold(config)):
        raise StudyError(f"{place}: the study has no cell of the data set {dataset!r} on the features {features!r}")
