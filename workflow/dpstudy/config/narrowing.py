"""Part of a study: some of its tables and figures, and only the cells that these are made of."""

import itertools
from collections.abc import Iterator, Mapping

from dpstudy.config.cells import Cell, unfold
from dpstudy.schema.messages import check_known
from dpstudy.tables.claims.names import entries_of, listed, roles_of

_AXES = {"dataset": "datasets", "features": "features", "entry": "entries", "epsilon": "epsilons"}
_WITHOUT_CELLS = ("noise", "splits", "neighbours")
_TIMES = ("groups", "rows", "columns")  # each of one with each of the others


def narrow(config: dict) -> dict:
    """The config with only the tables and figures that its key `only` names, and the cells that they need.

    Nothing else of the study changes, so that what is made for a part is made for the whole: its cells are found there.

    Args:
        config: checked and filled in.

    Raises:
        StudyError: `only` names what is neither a table nor a figure.
    """
    if "only" not in config:
        return config
    names, known = listed(config["only"]), {**config["tables"], **config["figures"]}
    for name in names:
        check_known("only", name, known, "table or figure")
    part = {key: value for key, value in config.items() if key != "only"}
    for kind in ("tables", "figures"):
        part[kind] = {name: spec for name, spec in config[kind].items() if name in names}
    wanted = {cell for kind in ("tables", "figures") for spec in part[kind].values() for cell in cells_of(spec, config)}
    part["cells"] = [
        {"datasets": [cell.dataset], "features": [cell.features], "entries": [cell.entry], "epsilons": [cell.epsilon]}
        for cell in unfold(config)
        if cell in wanted
    ]
    judged = {spec["paper"] for spec in part["tables"].values() if spec.get("style") == "claims"}
    papers = [paper for paper in config["report"]["claims"] if paper in judged]
    return part | {"report": config["report"] | {"claims": papers}}


def cells_of(spec: Mapping, config: dict) -> list[Cell]:
    """The cells that a table or figure may print something of, in the study's order; perhaps some more.

    Args:
        spec: of one table or figure.
        config: the study's, checked and filled in.
    """
    if spec.get("style") in _WITHOUT_CELLS:
        return []
    patterns = list(_patterns(spec))
    return [cell for cell in unfold(config) if any(_fits(cell, pattern) for pattern in patterns)]


def _patterns(spec: Mapping) -> Iterator[dict[str, list[str]]]:
    """What each part of a spec names, axis -> names; an axis without names stands for all of them."""
    base = _named(spec)
    found = [{"dataset": [d], "features": [f], "entry": [e]} for d, _, f, e in roles_of(spec)]
    if "methods" in spec:
        features = [name for given in spec.get("pretraining", {}).values() for name in listed(given)]
        entries = [entry for _, _, entry in entries_of(spec)]
        found.append({"entry": entries} | ({"features": features} if features else {}))
    series = {key: [line for line in spec.get("series", []) if key in line] for key in ("cells", "entries")}
    for row in (*spec.get("searches", []), *series["cells"]):
        found += [_named(row) | _named(part) for part in row["cells"]]
    lines = [line for panel in spec.get("panels", []) for line in panel.get("lines", [])]
    for part in (*lines, *spec.get("lines", []), *series["entries"], *spec.get("models", [])):
        found.append(_named(part))
    if times := [spec[key] for key in _TIMES if key in spec]:
        found += [{k: v for part in parts for k, v in _named(part).items()} for parts in itertools.product(*times)]
    for pattern in found or [{}]:
        yield base | pattern
        if "gain_over" in spec:
            yield base | pattern | {"features": [spec["gain_over"]]}


def _named(part: Mapping) -> dict[str, list[str]]:
    """Axis -> the names that a part of a spec has for it."""
    given = {axis: part.get(axis, part.get(several)) for axis, several in _AXES.items()}
    return {axis: listed(names) for axis, names in given.items() if names is not None}


def _fits(cell: Cell, pattern: Mapping[str, list[str]]) -> bool:
    return all(getattr(cell, axis) in names for axis, names in pattern.items())
