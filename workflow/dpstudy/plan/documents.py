"""Which files of the cells, and of what they are made from, tables and figures read: as their styles say."""

from collections.abc import Iterable, Mapping

from dpstudy.config.black_box_options import attacked
from dpstudy.data.names import split_names
from dpstudy.schema.methods import method_schema
from dpstudy.tables.style import Study
from dpstudy.tables.styles import module_of, style_of, table_style

Documents = dict[str, dict]  # kind -> name -> path; of splits: data set -> split -> path
KINDS = ("ledgers", "metrics", "trials", "curves", "audits", "black_boxes", "splits", "features")


def documents(study: Study, kind: str, names: Iterable[str]) -> Documents:
    """What some tables or figures read besides the summary, in the study's order.

    Args:
        kind: tables or figures.
        names: theirs.
    """
    asked: dict[str, set[str]] = {document: set() for document in KINDS}
    for name in names:
        spec = study.config[kind][name]
        for document, found in style_of(kind, spec).reads(spec, study).items():
            asked[document] |= set(found)
    return {document: _paths(study, document, found) for document, found in asked.items()}


def _paths(study: Study, document: str, names: set[str]) -> dict:
    config = study.config
    if document == "splits":
        return {
            source: {
                split: f"results/data/{source}/{split}/manifest.json"
                for split in split_names(options, private=source in config["datasets"])
            }
            for source, options in {**config["datasets"], **config["public"]}.items()
            if source in names
        }
    if document == "features":
        return {name: f"results/features/{name}/train/manifest.json" for name in sorted(names)}
    if document == "audits":
        return {name: path for name, path in audits(study).items() if name in names}
    if document == "black_boxes":
        return {name: path for name, path in black_boxes(study).items() if name in names}
    there = {
        "ledgers": "results/cells/{}/ledger.json",
        "metrics": "results/cells/{}/metrics.json",
        "curves": "results/cells/{}/curve.parquet",
        "trials": "results/tuning/{}/trials.parquet",
    }[document]
    cells = [name for name in study.cells if name in names]
    if document == "curves":
        cells = [name for name in cells if _rules(study, name).get("x-curve")]
    return {name: there.format(name) for name in cells}


def _rules(study: Study, cell: str) -> dict:
    return method_schema(study.config["methods"][study.cells[cell].entry]["method"])


def files(study: Study, found: Documents) -> list[str]:
    """The files of documents; of features the shards too, each after its manifest."""
    listed: list[str] = []
    for document, paths in found.items():
        for name, path in paths.items():
            listed += path.values() if document == "splits" else [path]
            if document == "features":
                shards = study.config["datasets"][name.partition("/")[0]]["shards"]
                listed += [path.replace("manifest.json", f"part-{shard:05d}.parquet") for shard in range(shards)]
    return listed


def audits(study: Study) -> dict[str, str]:
    """Cell -> its audit, for every cell that the study attacks: the entries that `audit` names, then claims, always."""
    audit, epsilons = study.config["audit"], study.config["audit"].get("epsilons", study.config["epsilons"])
    named = [
        name
        for name, cell in study.cells.items()
        if cell.entry in audit["entries"] and cell.epsilon in epsilons and cell.epsilon != "inf"
    ]
    named += [name for name in study.cells if _rules(study, name).get("x-audited")]
    return {name: f"results/audit/{name}/audit.json" for name in named}


def black_boxes(study: Study) -> dict[str, str]:
    """Cell -> what came of attacking it by the loss of trained models, for the entries that `black_box` names."""
    return {cell.path: f"results/audit/{cell.path}/black-box.json" for cell in attacked(study.config)}


def claims_table(study: Study, paper: str) -> str:
    """The name of the table that judges a paper's claims; "" where the study has none."""
    tables = study.config["tables"].items()
    return next((name for name, spec in tables if table_style(spec).judges and spec["paper"] == paper), "")


def style_modules(kind: str, specs: Iterable[Mapping]) -> list[str]:
    """The modules of the styles of some specs, each once: code that a script finds by name."""
    return sorted({module_of(kind, spec) for spec in specs})
