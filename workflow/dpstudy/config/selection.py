"""What tables and figures select from a study: names that exist, keys that their style takes, published numbers that
can be told, all checked before anything runs."""

from collections.abc import Iterable, Iterator

from dpstudy.config.cells import Cell, unfold
from dpstudy.config.selected_cells import check_compared, check_lines, check_neighbours, check_series
from dpstudy.config.table_roles import check_models, check_roles
from dpstudy.config.tuned import pays
from dpstudy.core.errors import StudyError
from dpstudy.evaluation.on_training import ON_TRAINING
from dpstudy.schema.messages import check_known
from dpstudy.schema.reading import schema
from dpstudy.tables.claims.names import METHODS, ROLES, entries_of, listed
from dpstudy.tables.published import along_epsilon, combine, find_all, lookup

_WITHOUT_METRIC = ("noise", "neighbours", "adjacencies", "pilot", "splits")  # what no model is scored for
_USUAL_ROW_KEYS = ("dataset", "features", "entry", "label", "epochs", "published")
_ROW_KEYS = {  # where a style takes others
    "disparity": ("features", "entry", "label"),
    "side_by_side": ("entry", "epsilon", "label", "published"),
    "adjacencies": ("features", "entry"),
    "pilot": ("dataset", "features", "entry", "label"),
}


def axes_of(config: dict) -> tuple[tuple[str, Iterable[str], str], ...]:
    """(key, the config's names, what they are) of each axis that cells are selected by."""
    return (
        ("datasets", config["datasets"], "data set"),
        ("features", config["features"], "feature set"),
        ("entries", config["methods"], "method entry"),
        ("epsilons", config["epsilons"], "epsilon"),
    )


def check_selection(place: str, spec: dict, config: dict) -> None:
    """Check one table or figure; `place` is where it stands in the config.

    Raises:
        StudyError: the first mistake.
    """
    for key, allowed, what in axes_of(config):
        for name in listed(spec.get(key, [])) if (key, "cited" in spec) != ("epsilons", True) else ():
            check_known(f"{place}.{key}", name, allowed, what)
    kinds = ("groups", "rows", "columns")
    parts = {f"{place}.{key}[{i}]": part for key in kinds for i, part in enumerate(spec.get(key, []))}
    for where, part in {place: spec, **parts}.items():
        if "dataset" in part:
            check_known(f"{where}.dataset", part["dataset"], config["datasets"], "data set")
    for where, part in parts.items():
        if "entry" in part:
            check_known(f"{where}.entry", part["entry"], config["methods"], "method entry")
        if "features" in part:
            check_known(f"{where}.features", part["features"], config["features"], "feature set")
        if "epsilon" in part:
            check_known(f"{where}.epsilon", part["epsilon"], config["epsilons"], "epsilon")
    if place == "tables.all":
        raise StudyError(f"{place}: results/tables/all.tex is the document with every table; choose another name")
    if place.startswith("tables."):
        _check_claims(place, spec, config)
        check_roles(place, spec, config)
        check_models(place, spec, config)
    counted = {**config["datasets"], **(config["public"] if spec["style"] == "splits" else {})}
    for dataset in spec.get("counterparts", {}):
        check_known(f"{place}.counterparts", dataset, counted, "data set")
    measures = spec["style"] not in _WITHOUT_METRIC
    if spec["style"] == "curve":  # which has metrics of its own, whatever is reported
        if spec.get("metric") == ON_TRAINING:
            raise StudyError(f"{place}.metric: {ON_TRAINING!r} has no curve; those of the test split have one")
    elif measures and spec.get("metric", "top1") not in config["evaluation"]["metrics"]:
        raise StudyError(
            f"{place}.metric: {spec['metric']!r} is not among evaluation.metrics {config['evaluation']['metrics']}"
        )
    _check_style(place, spec)
    if "cited" in spec and "dataset" not in spec and spec["style"] != "curve":
        raise StudyError(f"{place}: the key 'dataset' is missing; numbers that are 'cited' are of one data set")
    if place.startswith("tables.") or "rows" in spec:
        _check_rows(place, spec, parts)
    elif "groups" in spec and "features" in spec:
        raise StudyError(f"{place}: give either 'features' or 'groups', which name features with labels")
    if "gain_over" in spec:
        check_known(f"{place}.gain_over", spec["gain_over"], config["features"], "feature set")
        if {"published", "counterparts", "cited"} & spec.keys():
            raise StudyError(f"{place}.gain_over: published values are no gains; leave one of the two out")
    check_lines(place, spec, config)
    check_neighbours(place, spec, config)
    check_compared(place, spec, config)
    check_series(place, spec, config)
    _check_noise(place, spec)
    _check_searches(place, spec, config)
    _check_published(place, spec, config)
    _check_cited(place, spec, config)


def _check_claims(place: str, spec: dict, config: dict) -> None:
    """What the styles ceiling and claims name."""
    for method, epochs, entry in entries_of(spec):
        check_known(f"{place}.methods", method, METHODS, "method of mehta2023")
        check_known(f"{place}.methods.{method}.{epochs}", entry, config["methods"], "method entry")
    for label, features in spec.get("pretraining", {}).items():
        for name in listed(features):
            check_known(f"{place}.pretraining.{label}", name, config["features"], "feature set")
    for number, control in enumerate(spec.get("controls", [])):
        where = f"{place}.controls[{number}]"
        check_known(f"{where}.features", control["features"], config["features"], "feature set")
        for key in ("entry", "independent"):
            check_known(f"{where}.{key}", control[key], config["methods"], "method entry")


def _check_style(place: str, spec: dict) -> None:
    kind = "table" if place.startswith("tables.") else "figure"
    style, taken = spec["style"], schema("config")["$defs"][kind]["x-styles"]
    own = {key for keys in taken.values() for key in keys}
    for key in spec:
        if key in own and key not in taken[style]:
            takes = ", ".join(taken[style]) or "none of its own"
            raise StudyError(f"{place}.{key}: the style {style!r} does not take this key; it takes {takes}")
    needed = {
        "grouped": ("groups", "rows"),
        "ceiling": ("paper",),
        "claims": ("paper", *(() if spec.get("paper") in ROLES else ("methods",))),
        "search": ("searches",),
        "parameters": ("models",),
        "disparity": ("rows", "column"),
        "membership": ("rows",),
        "pilot": ("rows",),
        "side_by_side": ("dataset", "columns", "rows"),
        "neighbours": ("dataset", "features"),
        "curve": ("panels",),
        "noise": ("x", "noise"),
    }
    if kind == "figure":
        needed |= {"search": ("searches", "panels"), "size": ("datasets", "lines"), "settings": ("panels", "series")}
    for key in needed.get(style, ()):
        if key not in spec:
            raise StudyError(f"{place}: the key {key!r} is missing; the style {style!r} needs it")
    if "features" in spec and isinstance(spec["features"], str) != (style == "neighbours"):
        wanted = "the name of one feature set" if style == "neighbours" else "a list"
        raise StudyError(f"{place}.features: {spec['features']!r} must be {wanted} in the style {style!r}")
    _check_panels(place, spec)


def _check_panels(place: str, spec: dict) -> None:
    """Panels of curves have lines, those of searches what they go by, those of settings two axes."""
    needed = {"search": ("by",), "settings": ("x", "y")}.get(spec["style"], ("lines",))
    for number, panel in enumerate(spec.get("panels", [])):
        where = f"{place}.panels[{number}]"
        for key in panel:
            if key not in (*needed, "title"):
                takes = " and ".join(needed)
                raise StudyError(f"{where}.{key}: the style {spec['style']!r} does not take this key; it takes {takes}")
        for key in needed:
            if key not in panel:
                raise StudyError(f"{where}: the key {key!r} is missing; the style {spec['style']!r} needs it")


def _check_noise(place: str, spec: dict) -> None:
    """The axis is one that the style knows, and each series of a figure of noise varies along it alone."""
    if "x" in spec and (spec["x"] == "sampling_rate" or spec["style"] == "noise"):
        own = {"noise": ("epsilon", "sampling_rate"), "curve": ("epoch", "step", "epsilon")}[spec["style"]]
        if spec["x"] not in own:
            raise StudyError(f"{place}.x: {spec['x']!r}: the style {spec['style']!r} takes {', '.join(own)}")
    for number, series in enumerate(spec.get("noise", {}).get("series", [])):
        where = f"{place}.noise.series[{number}]"
        fixed = "batch_sizes" if spec["x"] == "epsilon" else "epsilons"
        if len(series[fixed]) != 1:
            raise StudyError(f"{where}.{fixed}: {len(series[fixed])} of them, but x is {spec['x']!r}: give one")
        for batch in series["batch_sizes"]:
            if batch > spec["noise"]["records"]:
                raise StudyError(f"{where}.batch_sizes: {batch} exceeds the {spec['noise']['records']} records")
        if "inf" in series["epsilons"]:
            raise StudyError(f"{where}.epsilons: 'inf' needs no noise; leave it out")
        if series["algorithm"] == "iteration-secret" and series["accounting"] != "certified":
            raise StudyError(f"{where}.accounting: {series['accounting']!r} knows no secret order; use 'certified'")


def _check_searches(place: str, spec: dict, config: dict) -> None:
    """Every search of a table or figure is one that the study makes, and chooses what the figure's panels go by."""
    if "searches" in spec and spec.get("metric", "top1") != config["evaluation"]["metrics"][0]:
        raise StudyError(
            f"{place}.metric: {spec.get('metric', 'top1')!r} is not what the searches look at, which is the first of "
            f"evaluation.metrics, {config['evaluation']['metrics'][0]!r}"
        )
    by = [panel["by"] for panel in spec.get("panels", []) if "by" in panel]
    for number, row in enumerate(spec.get("searches", [])):
        for index, part in enumerate(row["cells"]):
            where = f"{place}.searches[{number}].cells[{index}]"
            cell = Cell(row["dataset"], part["features"], part["entry"], row["epsilon"])
            if cell not in unfold(config):
                raise StudyError(f"{where}: the study has no cell {cell.path}")
            options = cell.options(config)
            if "tuning" not in options or pays(options):
                raise StudyError(f"{where}: the cell {cell.path} has no search beforehand, whose trials could be shown")
            for name in by:
                if name != "label" and "choices" not in options["tuning"]["space"].get(name, {}):
                    raise StudyError(f"{where}: the search of {cell.path} does not choose {name!r} from a list")


def _check_rows(place: str, spec: dict, parts: dict[str, dict]) -> None:
    style = spec["style"]
    taken = _ROW_KEYS.get(style, _USUAL_ROW_KEYS)
    for number, row in enumerate(spec.get("rows", [])):
        for key in row:
            if key not in taken:
                takes = ", ".join(taken)
                raise StudyError(f"{place}.rows[{number}].{key}: the style {style!r} takes rows with {takes}")
        if "epsilon" in taken and "epsilon" not in row:
            raise StudyError(f"{place}.rows[{number}]: the key 'epsilon' is missing; the style {style!r} needs it")
    for where, part in parts.items():
        if "features" not in part and "groups" not in spec and "columns" not in spec:
            raise StudyError(f"{where}: the key 'features' is missing; only rows of a table with groups go without it")
        if "features" in part and "entry" in part and "groups" in spec:
            raise StudyError(f"{where}.features: the table's groups name the features; leave it out")


def _check_published(place: str, spec: dict, config: dict) -> None:
    """Every filter on the published numbers finds what it names, and no more than one number a cell."""
    metric = spec.get("metric", "top1")
    for dataset in spec.get("datasets", [spec["dataset"]] if "dataset" in spec else config["datasets"]):
        for parts in _parts(spec, dataset):
            where = combine(spec, dataset, *parts)
            if where is None:
                continue
            find = find_all if spec.get("style") == "best" else lookup
            epsilons = next(([part["epsilon"]] for part in parts if "epsilon" in part), None)
            for epsilon in epsilons or spec.get("epsilons", config["epsilons"]):
                try:
                    find({"metric": metric, **where}, epsilon)
                except StudyError as error:
                    raise StudyError(f"{place}: {error}") from None


def _check_cited(place: str, spec: dict, config: dict) -> None:
    """What is cited has labels of its own and a number; every epsilon is the study's or has one."""
    if "cited" not in spec:
        return
    if spec["style"] == "curve":
        return _check_cited_points(place, spec)
    metric, epsilons = spec.get("metric", "top1"), spec.get("epsilons", config["epsilons"])
    taken, printed = set(), set(config["epsilons"])
    for number, row in enumerate(spec["cited"]):
        if row["label"] in taken:
            raise StudyError(f"{place}.cited[{number}].label: {row['label']!r} is another row's already")
        taken.add(row["label"])
        where = combine(spec, spec["dataset"], row)
        found = {e for e in epsilons if where and find_all({"metric": metric, **where}, e)}
        if not found:
            raise StudyError(
                f"{place}.cited[{number}]: nothing is printed for it at the epsilons {', '.join(epsilons)}"
            )
        printed |= found
    for epsilon in epsilons:
        if epsilon not in printed:
            raise StudyError(f"{place}.epsilons: {epsilon!r} is not the study's, and nothing cited is printed at it")


def _check_cited_points(place: str, spec: dict) -> None:
    """What is cited beside curves stands over epsilon, in their one panel, under labels of its own."""
    if spec.get("x", "epoch") != "epsilon" or len(spec["panels"]) > 1:
        raise StudyError(
            f"{place}.cited: printed numbers have an epsilon and no epoch: give 'x: epsilon' and one panel"
        )
    taken = {line.get("label", line["entry"]) for line in spec["panels"][0]["lines"]}
    for number, row in enumerate(spec["cited"]):
        if row["label"] in taken:
            raise StudyError(f"{place}.cited[{number}].label: {row['label']!r} is another line's already")
        taken.add(row["label"])
        try:
            found = along_epsilon({"metric": spec.get("metric", "top1"), **row["published"]})
        except StudyError as error:
            raise StudyError(f"{place}.cited[{number}]: {error}") from None
        if not found:
            raise StudyError(f"{place}.cited[{number}]: nothing is printed for it at a finite epsilon")


def _parts(spec: dict, dataset: str) -> Iterator[tuple[dict, ...]]:
    """The groups, rows, or pairs of both, that a published number is looked up for."""
    groups, rows = (
        [part for part in spec.get(key, []) if part.get("dataset", dataset) == dataset] for key in ("groups", "rows")
    )
    if spec.get("style") == "best":
        yield ()
    elif "columns" in spec:
        yield from ((row, column) for row in rows for column in spec["columns"])
    elif groups and rows:
        yield from ((group, row) for group in groups for row in rows)
    else:
        yield from ((part,) for part in (*(groups or rows), *spec.get("cited", ())))
