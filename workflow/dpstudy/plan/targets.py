"""The targets of a study, and all of its files that depend on config or library."""

from dataclasses import asdict
from pathlib import Path

from dpstudy.config.black_box_options import attacked
from dpstudy.config.cells import Cell, beyond_target, unfold
from dpstudy.config.tuned import unpaid_searches
from dpstudy.data.own import test_is_public
from dpstudy.plan import paths
from dpstudy.plan.dedup import descriptions, rule_options
from dpstudy.plan.publics import backbone_files, fit_files, is_matched
from dpstudy.plan.sources import all_files, feature_files, scaling_of, sources, splits
from dpstudy.plan.training import has_seed_jobs
from dpstudy.provenance.hashes import config_hash
from dpstudy.schema.methods import method_schema


def cell_files(study: dict, *templates: str) -> list[str]:
    """One file of every cell for each template, in the study's order."""
    return [template.format(**asdict(cell)) for template in templates for cell in unfold(study)]


def files_of_dataset(study: dict, dataset: str, template: str) -> list[str]:
    """One file of every cell of a data set, in the study's order."""
    return [template.format(**asdict(cell)) for cell in unfold(study) if cell.dataset == dataset]


def facts_of_runs(study: dict) -> str:
    """The template of the file that lists a cell's seeds: run.json, or metrics.json where scores are not kept.

    Scores are then evaluated before they are deleted, so that whoever asks for what follows from a run has them
    evaluated too.
    """
    return paths.RUN if study["evaluation"]["keep_scores"] else paths.METRICS


def seed_files(study: dict, cell: Cell) -> list[str]:
    """The files that the jobs of a cell's seeds make."""
    kinds = (paths.SEED_RUN, paths.SEED_LEDGER, paths.SEED_CURVE, paths.SEED_MODEL)
    return [path.format(**asdict(cell), seed=seed) for path in kinds for seed in study["seeds"]]


def seed_folders(study: dict, cell: Cell) -> list[str]:
    """The folders of a cell's seeds, where each seed is a job."""
    return [paths.SEED_FOLDER.format(**asdict(cell), seed=seed) for seed in study["seeds"]]


def score_files(study: dict, cell: Cell) -> list[str]:
    """The test scores of a cell: one file, or one per seed where each is a job."""
    if has_seed_jobs(study, cell.entry):
        return [paths.SEED_SCORES.format(**asdict(cell), seed=seed) for seed in study["seeds"]]
    return [paths.SCORES.format(**asdict(cell))]


def certificates(study: dict) -> list[str]:
    """The certificates of the cells' ledgers, a file for each data set."""
    return [paths.CERTIFICATE.format(dataset=name) for name in dict.fromkeys(cell.dataset for cell in unfold(study))]


def has_curve(study: dict, entry: str) -> bool:
    """Whether the cells of an entry have a training curve."""
    return method_schema(study["methods"][entry]["method"])["x-curve"]


def audits(study: dict) -> dict[str, str]:
    """Cell -> its audit with canaries: of claimed guarantees always, and of the entries that `audit` names."""
    entries, epsilons = study["audit"]["entries"], study["audit"].get("epsilons", study["epsilons"])
    named = [cell for cell in unfold(study) if cell.entry in entries and cell.epsilon in epsilons]
    private, claims = [cell for cell in named if cell.epsilon != "inf"], claimed_entries(study)
    every = [*private, *(cell for cell in unfold(study) if cell.entry in claims)]
    return {cell.path: paths.AUDIT.format(**asdict(cell)) for cell in every}


def audit_of(study: dict, cell: Cell) -> list[str]:
    """The audit of a cell, if it has one."""
    return [path for name, path in audits(study).items() if name == cell.path]


def black_boxes(study: dict) -> dict[str, str]:
    """Cell -> its black-box audit, for the entries that `black_box` names."""
    return {cell.path: paths.BLACK_BOX.format(**asdict(cell)) for cell in attacked(study)}


def final_targets(study: dict) -> list[str]:
    """Everything that a study is asked to make."""
    tables = (paths.TABLE_TEX, paths.TABLE_CSV)
    figures = (paths.FIGURE_PDF, paths.FIGURE_PNG, paths.FIGURE_CSV, paths.FIGURE_SVG)
    return [
        *(path.format(table=name) for name in study["tables"] for path in tables),
        *(path.format(figure=name) for name in study["figures"] for path in figures),
        paths.SUMMARY_CSV,
        paths.SUMMARY,
        paths.TOTAL,
        *certificates(study),
        *audits(study).values(),
        *black_boxes(study).values(),
        paths.REPORT,
    ]


def lasting_files(study: dict) -> list[str]:
    """Every file that a study makes, or has made, and that another config or library would change."""
    pairs = dict.fromkeys((cell.dataset, cell.features) for cell in unfold(study))
    extracted = [pair for pair in pairs if not scaling_of(study, pair[1])]
    patterns = {
        "private/statistics": "*.safetensors",
        "tuning": "trials.parquet",
        "runs": "run.json",
        "audit": "*.json",
        "claims": "*.json",
        "tables": "all.*",
        "release": "eps=*",
    }
    return [
        *all_files(study, *sources(study)),
        *(path for source in sources(study) for path in descriptions(study, source)),
        *(paths.DEDUP_REPORT.format(public=public) for public in study["public"] if is_matched(study, public)),
        *(path for name in study["backbones"] for path in backbone_files({"backbone": name})),
        *(path for name in study["fits"] for path in fit_files({"fit": name})),
        *(
            path
            for dataset, features in extracted
            for split in splits(study, dataset)
            for path in feature_files(study, dataset, features, split)
        ),
        *(str(path) for folder, name in patterns.items() for path in Path(paths.RESULTS, folder).rglob(name)),
        *cell_files(study, paths.RUN),
        *cell_files(study, paths.METRICS),
        *final_targets(study),
    ]


def claimed_entries(study: dict) -> list[str]:
    """The entries whose guarantee is claimed but not proved."""
    return [name for name, entry in study["methods"].items() if method_schema(entry["method"]).get("x-audited")]


def public_tests(study: dict) -> dict[str, bool]:
    """Data set -> whether its test records are public."""
    return {name: test_is_public(dataset) for name, dataset in study["datasets"].items()}


def private_tests(study: dict) -> list[str]:
    """The data sets whose test records are not public."""
    return [name for name, public in public_tests(study).items() if not public]


def axes(study: dict) -> dict[str, list[str]]:
    """The study's names in its order, with the entries and data sets that tables mark."""
    return {
        "datasets": list(study["datasets"]),
        "features": list(study["features"]),
        "entries": list(study["methods"]),
        "epsilons": study["epsilons"],
        "claimed": claimed_entries(study),
        "beyond": beyond_target(study),
        "searched": unpaid_searches(study),
        "private_tests": private_tests(study),
    }


def shown_benchmarks(study: dict) -> str | None:
    """The folder of jobs' run times, for the report; None where times would reveal the secret number of repetitions."""
    repeated = any(cell.options(study).get("tuning", {}).get("pay") == "repeats" for cell in unfold(study))
    return None if repeated else paths.BENCHMARKS


def deduplicated(study: dict) -> dict[str, dict]:
    """Public set -> its de-duplication options, for public sets that something is trained or fitted on."""
    learned = sorted({made["public"] for made in (*study["backbones"].values(), *study["fits"].values())})
    how = {key: study["dedup"][key] for key in ("drop", "method")}
    thresholds = rule_options(study)
    return {public: how | {"rule": thresholds} for public in learned if is_matched(study, public)}


def counts_of_duplicates(study: dict) -> list[str]:
    """The de-duplication reports, for a report that is not published; none for one that may be."""
    return [paths.DEDUP_REPORT.format(public=public) for public in deduplicated(study) if private_tests(study)]


def manifests_with_holes(study: dict) -> list[str]:
    """The manifests of data sets that may lack unreadable images, as `counts_of_duplicates` for one report alone."""
    names = [name for name, dataset in study["datasets"].items() if dataset.get("unreadable") and private_tests(study)]
    return [paths.DATA_MANIFEST.format(source=name, split=split) for name in names for split in splits(study, name)]


def totalled_cells(study: dict) -> list[dict[str, str]]:
    """The parameters of the total: each cell's name and data set."""
    return [{"name": cell.path, "dataset": cell.dataset} for cell in unfold(study)]


def deltas(study: dict) -> dict[str, str]:
    """Data set -> its delta."""
    return {name: dataset["delta"] for name, dataset in study["datasets"].items()}


def tables(study: dict, template: str) -> list[str]:
    """A file of each table."""
    return [template.format(table=name) for name in study["tables"]]


def figures(study: dict, template: str) -> list[str]:
    """A file of each figure."""
    return [template.format(figure=name) for name in study["figures"]]


def claims(study: dict) -> list[str]:
    """The verdicts on each paper whose claims the report judges."""
    return [paths.CLAIMS.format(paper=paper) for paper in study["report"]["claims"]]


def report(study: dict) -> dict:
    """The parameters of the report about the study, and the files of run times and of the rule graph."""
    return {
        "study": study["study"],
        "config_hash": config_hash(study),
        "question": study.get("question", ""),
        "useful": study.get("useful"),
        "axes": axes(study),
        "tables": study["tables"],
        "figures": study["figures"],
        "public_tests": public_tests(study),
        "dedup": deduplicated(study),
        "benchmarks": shown_benchmarks(study),
        "graph": paths.GRAPH,
    }


def paper(study: dict) -> dict:
    """The parameters of the paper about the study: of the report's those that it has, and of tables their names."""
    told = report(study) | {"tables": list(study["tables"])}
    return {key: told[key] for key in ("study", "question", "axes", "tables", "figures")}
