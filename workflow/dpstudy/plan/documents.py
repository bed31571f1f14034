"""The documents of cells that tables, figures and the report read, as their styles declare.

A document is named by its kind and whose it is: a cell's ledger, metrics, trials of its search, curve, audit or black
box; a data set's splits; the training features of a feature set. Rules have the files as inputs and the names as
parameters, in the same order, which `tables.results.Results.open` puts together.
"""

from collections.abc import Iterable

from dpstudy.config.narrowing import study_of
from dpstudy.evaluation.metrics import modules
from dpstudy.plan import paths
from dpstudy.plan.code import metric_code, metric_modules, script_code
from dpstudy.plan.sources import feature_files, sources, splits
from dpstudy.plan.targets import audits, axes, black_boxes, has_curve
from dpstudy.tables.style import Study
from dpstudy.tables.styles import module_of, style_of, table_style

Names = dict[str, list]  # kind -> whose documents are read; of splits [data set, split]
Files = dict[str, list[str]]  # kind -> files in the same order; shards of features have no names
KINDS = ("ledgers", "metrics", "trials", "curves", "audits", "black_boxes", "splits", "features")
_OF_CELLS = {"ledgers": paths.LEDGER, "metrics": paths.METRICS, "curves": paths.CURVE, "trials": paths.TRIALS}
_ATTACKS = {"audits": audits, "black_boxes": black_boxes}
_laid_out: list[Study] = []  # the last study: its cells are unfolded once for all of its tables


def _study(study: dict) -> Study:
    if not _laid_out or _laid_out[0].config is not study:
        _laid_out[:] = [study_of(study)]
    return _laid_out[0]


def names_of(study: dict, kind: str, names: Iterable[str]) -> Names:
    """The names of the documents that some tables or figures read besides the summary, in the study's order.

    Args:
        kind: tables or figures.
        names: theirs.
    """
    laid_out = _study(study)
    asked: dict[str, set[str]] = {document: set() for document in KINDS}
    for name in names:
        spec = study[kind][name]
        for document, wanted in style_of(kind, spec).reads(spec, laid_out).items():
            asked[document] |= set(wanted)
    return {document: _ordered(study, document, wanted) for document, wanted in asked.items()}


def _ordered(study: dict, document: str, wanted: set[str]) -> list:
    """Those of the names that have such a document, in the study's order."""
    if not wanted:
        return []
    if document == "splits":
        return [[source, split] for source in sources(study) if source in wanted for split in splits(study, source)]
    if document == "features":
        return sorted(wanted)
    if document in _ATTACKS:
        return [name for name in _ATTACKS[document](study) if name in wanted]
    cells = _study(study).cells
    return [name for name in cells if name in wanted and (document != "curves" or has_curve(study, cells[name].entry))]


def files_of(study: dict, names: Names) -> Files:
    """The files of named documents, with the shards of features besides their manifests."""
    files: Files = {}
    for document, wanted in names.items():
        if document == "splits":
            files[document] = [paths.DATA_MANIFEST.format(source=source, split=split) for source, split in wanted]
        elif document == "features":
            pairs = [name.split("/") for name in wanted]
            sets = [feature_files(study, dataset, features, "train") for dataset, features in pairs]
            files[document] = [manifest for manifest, *_ in sets]
            files["feature_shards"] = [shard for _, *shards in sets for shard in shards]
        elif document in _ATTACKS:
            attacks = _ATTACKS[document](study)
            files[document] = [attacks[name] for name in wanted]
        else:
            files[document] = [_OF_CELLS[document].replace(paths.CELL, name) for name in wanted]
    return files


def names_of_table(study: dict, table: str) -> Names:
    """The names of the documents that a table reads."""
    return names_of(study, "tables", [table])


def files_of_table(study: dict, table: str) -> Files:
    """The files of the documents that a table reads."""
    return files_of(study, names_of_table(study, table))


def names_of_figure(study: dict, figure: str) -> Names:
    """The names of the documents that a figure reads."""
    return names_of(study, "figures", [figure])


def files_of_figure(study: dict, figure: str) -> Files:
    """The files of the documents that a figure reads."""
    return files_of(study, names_of_figure(study, figure))


def cells_of_figures(study: dict) -> dict[str, list[str]]:
    """Figure -> the cells that it draws, in the study's order."""
    laid_out, by_figure = _study(study), {}
    for name, spec in study["figures"].items():
        drawn = set(style_of("figures", spec).cells(spec, laid_out))
        by_figure[name] = [cell for cell in laid_out.cells if cell in drawn]
    return by_figure


def names_of_paper(study: dict) -> Names:
    """The names of the documents that figure captions read: ledgers, metrics and test splits of drawn cells."""
    drawn = {cell for cells in cells_of_figures(study).values() for cell in cells}
    datasets = {_study(study).cells[cell].dataset for cell in drawn}
    asked = {"ledgers": drawn, "metrics": drawn, "splits": datasets}
    return {document: _ordered(study, document, asked.get(document, set())) for document in KINDS}


def files_of_paper(study: dict) -> Files:
    """The files of the documents that figure captions read."""
    return files_of(study, names_of_paper(study))


def names_of_report(study: dict) -> Names:
    """The names of the documents that the report reads.

    They are those of all tables, test splits of figures, and ledgers, metrics and audits of all cells.
    """
    cells = list(_study(study).cells)
    documents = names_of(study, "tables", study["tables"])
    drawn = names_of_paper(study)["splits"]
    splits = {dataset for dataset, _ in (*documents["splits"], *drawn)}
    of_cells = {"ledgers": cells, "metrics": cells, "audits": list(audits(study))}
    return documents | of_cells | {"splits": _ordered(study, "splits", splits)}


def files_of_report(study: dict) -> Files:
    """The files of the documents that the report reads."""
    return files_of(study, names_of_report(study))


def claims_table(study: dict, paper: str) -> str:
    """The name of the table that judges a paper's claims; "" where the study has none."""
    tables = study["tables"].items()
    return next((name for name, spec in tables if table_style(spec).judges and spec["paper"] == paper), "")


def names_of_claims(study: dict, paper: str) -> Names:
    """The names of the documents that a paper's claims are judged by; none without a table of claims."""
    table = claims_table(study, paper)
    return names_of(study, "tables", [table] if table else [])


def files_of_claims(study: dict, paper: str) -> Files:
    """The files of the documents that a paper's claims are judged by."""
    return files_of(study, names_of_claims(study, paper))


def spec_of_claims(study: dict, paper: str) -> dict | None:
    """The spec of the table that judges a paper's claims, or None."""
    return study["tables"].get(claims_table(study, paper))


def summary_of_claims(study: dict, paper: str) -> list[str]:
    """The summary's path, if a table judges the claims; otherwise they are listed without numbers."""
    return [paths.SUMMARY] if claims_table(study, paper) else []


def axes_of_claims(study: dict, paper: str) -> dict:
    """The study's names, if a table judges the claims; otherwise empty, as claims then do not depend on the study."""
    return axes(study) if claims_table(study, paper) else {}


def claims_code(study: dict, paper: str) -> list[str]:
    """The code that judges the claims, with the study's metrics if a table judges them."""
    return metric_code(study, "judge_claims") if claims_table(study, paper) else script_code("judge_claims")


def _style_modules(study: dict, kind: str, names: Iterable[str]) -> list[str]:
    """The modules of some tables or figures that scripts find by name: of their styles, and of metrics."""
    specs = [study[kind][name] for name in names]
    styles = {module_of(kind, spec) for spec in specs}
    return sorted({*styles, *metric_modules(study), *modules(spec["metric"] for spec in specs)})


def table_code(study: dict, table: str) -> list[str]:
    """The code that builds a table; only its own style is included."""
    return script_code("build_table", *_style_modules(study, "tables", [table]))


def figure_code(study: dict, figure: str) -> list[str]:
    """The code that draws a figure; only its own style is included."""
    return script_code("draw_figure", *_style_modules(study, "figures", [figure]))


def paper_code(study: dict) -> list[str]:
    """The code that writes the paper, with the figures' styles, which write captions."""
    return script_code("write_paper", *_style_modules(study, "figures", study["figures"]))


def report_code(study: dict) -> list[str]:
    """The code that builds the report."""
    styles = [module for kind in ("tables", "figures") for module in _style_modules(study, kind, study[kind])]
    return script_code("build_report", *styles)
