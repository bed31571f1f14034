# Which files of the cells, and of what they are made from, tables and figures read.

import functools

from dpstudy.config import cells as study_cells
from dpstudy.config.selected_cells import series_cells
from dpstudy.schema.methods import method_schema
from dpstudy.tables.claims.names import roles_of

CELLS = study_cells.unfold(STUDY)
feature_files = functools.partial(sources.feature_files, STUDY)
splits_of = functools.partial(sources.splits, STUDY)
audits = functools.partial(targets.audits, STUDY)
black_boxes = functools.partial(targets.black_boxes, STUDY)


def cell_paths(name):
    return {cell.path: f"results/cells/{cell.path}/{name}" for cell in CELLS}


def curve_files(figure):
    """The curve and the metrics of every cell that a figure of curves draws, one after the other."""
    lines = [line for panel in STUDY["figures"][figure].get("panels", []) for line in panel.get("lines", [])]
    cells = dict.fromkeys(
        study_cells.Cell(*(line[key] for key in ("dataset", "features", "entry", "epsilon"))).path for line in lines
    )
    return [f"results/cells/{path}/{name}" for path in cells for name in ("curve.parquet", "metrics.json")]


def sized_ledgers(figure):
    """Cell -> its ledger, for every cell of a figure by size."""
    spec = STUDY["figures"][figure]
    cells = [
        study_cells.Cell(dataset, line["features"], line["entry"], line["epsilon"]).path
        for line in spec.get("lines", [])
        for dataset in spec["datasets"]
    ]
    return {path: f"results/cells/{path}/ledger.json" for path in cells}


def grouped_metrics(figure):
    """Cell -> its metrics, for every cell of a figure by subgroup, or of settings."""
    spec = STUDY["figures"][figure]
    if spec["style"] == "settings":
        names = [cell.path for line in spec["series"] for cell in series_cells(line)]
        return {name: f"results/cells/{name}/metrics.json" for name in names}
    if spec["style"] != "disparity":
        return {}
    pairs = [(row["features"], row["entry"]) for row in spec["rows"]]
    return {
        cell.path: f"results/cells/{cell.path}/metrics.json"
        for cell in CELLS
        if cell.dataset == spec["dataset"]
        and (cell.features, cell.entry) in pairs
        and cell.epsilon in spec.get("epsilons", STUDY["epsilons"])
    }


def neighbour_files(figure):
    """The private training features that a figure of neighbours measures, the manifest first."""
    spec = STUDY["figures"][figure]
    if spec["style"] != "neighbours":
        return []
    return feature_files(spec["dataset"], spec["features"], "train")


def in_roles(tables):
    """The cells that tables name in a role."""
    named = {(dataset, features, entry) for table in tables for dataset, _, features, entry in roles_of(table)}
    return [cell for cell in CELLS if (cell.dataset, cell.features, cell.entry) in named]


def curves_of(tables):
    """Cell -> its training curve, for every cell with one that tables name in a role."""
    return {
        cell.path: f"results/cells/{cell.path}/curve.parquet"
        for cell in in_roles(tables)
        if method_schema(cell.options(STUDY)["method"]).get("x-curve")
    }


def black_boxes_of(tables):
    """The same where tables print it, or name a cell in a role."""
    if any(table.get("style") in ("membership", "pilot") for table in tables):
        return black_boxes()
    named = {cell.path for cell in in_roles(tables)}
    return {path: found for path, found in black_boxes().items() if path in named}


def splits_in(tables):
    """Data set -> split -> the manifest of its images, where tables print how large splits are: of private sets, and of
    public ones that have a counterpart in a paper."""
    printed = [table for table in tables if table.get("style") == "splits"]
    named = {
        name
        for table in printed
        for name in table.get("datasets", [table["dataset"]] if "dataset" in table else STUDY["datasets"])
    }
    named |= {name for table in printed for name in table.get("counterparts", {}) if name in STUDY["public"]}
    return {
        source: {split: f"results/data/{source}/{split}/manifest.json" for split in splits_of(source)}
        for source in [*STUDY["datasets"], *STUDY["public"]]
        if source in named
    }


def manifests_of(tables):
    """The same as a list."""
    return [path for splits in splits_in(tables).values() for path in splits.values()]


def audits_of(tables):
    """Cell -> its audit, for every attacked cell that tables print, or name in a role."""
    printed = [table for table in tables if table.get("style", "plain") in ("plain", "grouped", "side_by_side")]
    wanted = {name for table in printed for name in table.get("datasets", [table.get("dataset", "")])}
    everywhere = any("dataset" not in table and "datasets" not in table for table in printed)
    named = {cell.path for cell in CELLS if everywhere or cell.dataset in wanted}
    named |= {cell.path for cell in in_roles(tables)}
    return {path: audit for path, audit in audits().items() if path in named}


def searches_of(specs):
    """Cell -> the trials of its search, for every search that tables lay out or figures draw."""
    found = {}
    for row in (row for spec in specs for row in spec.get("searches", [])):
        for part in row["cells"]:
            cell = study_cells.Cell(row["dataset"], part["features"], part["entry"], row["epsilon"])
            found[cell.path] = f"results/tuning/{cell.path}/trials.parquet"
    return found


def claims_table(paper):
    """The table of style `claims` on a paper, as (name, spec); where the study has none, ("", None)."""
    tables = STUDY["tables"].items()
    return next(((n, t) for n, t in tables if t.get("style") == "claims" and t["paper"] == paper), ("", None))


def claims_documents(paper):
    """What its claims are judged by besides the summary: kind -> cell -> path; nothing where the study has no table."""
    spec = claims_table(paper)[1]
    if spec is None:
        return {}
    return {
        "ledgers": cell_paths("ledger.json"),
        "metrics": cell_paths("metrics.json"),
        "trials": searches_of([spec]),
        "curves": curves_of([spec]),
        "audits": audits_of([spec]),
        "black_boxes": black_boxes_of([spec]),
    }
