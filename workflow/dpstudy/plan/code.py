"""The source files of each job: inputs of its rule, and their hash as a parameter.

Of an input Snakemake looks at the content only where its time is later than the output's, and code of another version
may be older than what the present one made: hence the hash.
"""

from dpstudy.config.cells import Cell
from dpstudy.config.tuned import CALIBRATION, PAID_TUNING, PUBLIC, PUBLIC_CALIBRATION, pays
from dpstudy.core.errors import StudyError
from dpstudy.evaluation.metrics import modules
from dpstudy.features import extractor_modules
from dpstudy.methods import module_name
from dpstudy.models.kinds import MODELS
from dpstudy.plan import paths
from dpstudy.plan.dedup import embedding_modules
from dpstudy.plan.publics import fitted_on
from dpstudy.plan.sources import reader_modules
from dpstudy.provenance.code import PACKAGE, WORKFLOW, closure, relative
from dpstudy.provenance.hashes import library_hash, list_code
from dpstudy.schema.methods import method_schema
from dpstudy.tables.published import (
    ARCHITECTURES,
    CLAIMS,
    DISTANCES,
    GROUPS,
    HYPERPARAMETERS,
    LEAKS,
    RESULTS,
    ROLES,
    TIMINGS,
)


def script_code(script: str, *modules: str) -> list[str]:
    """The files of a rule's script and every library file that it and the named modules import."""
    return closure(str(WORKFLOW / "scripts" / f"{script}.py"), *modules)


def script_hash(script: str, *modules: str) -> str:
    """A hash of the files of `script_code`."""
    return library_hash(script_code(script, *modules))


def reading_code(study: dict, source: str) -> list[str]:
    """The code that reads a shard of a data set."""
    return script_code("prepare_shard", *reader_modules(study, source))


def describing_code(study: dict, source: str) -> list[str]:
    """The code that writes the manifest of a data set's split."""
    return script_code("prepare_manifest", *reader_modules(study, source))


def embedding_code(study: dict, script: str) -> list[str]:
    """The code of a script that describes images for de-duplication."""
    return script_code(script, *embedding_modules(study))


def extraction_code(study: dict, features: str) -> list[str]:
    """The code that extracts a feature set."""
    return script_code("extract_shard", *_extractors(study["features"][features]))


def projection_code(study: dict, fit: str) -> list[str]:
    """The code that fits a projection."""
    return script_code("fit_projection", *_extractors(fitted_on(study, fit)))


def _extractors(options: dict) -> list[str]:
    return extractor_modules(options) or [f"dpstudy.features.{options['extractor']}"]


def metric_modules(study: dict) -> list[str]:
    """The modules of the study's metrics, which scripts import by name."""
    return modules(study["evaluation"]["metrics"])


def metric_code(study: dict, script: str) -> list[str]:
    """The code of a script that evaluates the study's metrics."""
    return script_code(script, *metric_modules(study))


def method_code(study: dict, options: dict, script: str = "train_cell") -> list[str]:
    """The code of a script that runs a cell's method."""
    beside = ["dpstudy.jobs.rank"] if method_schema(options["method"]).get("x-per-seed") else []
    if pays(options) or script == "tune_entry":
        beside += modules(study["evaluation"]["metrics"][:1])  # which searches maximise
    if pays(options):
        beside += [PAID_TUNING, f"{PAID_TUNING}_{options['tuning']['pay']}"]
    if "calibration" in options and script == "train_cell":
        beside.append(PUBLIC_CALIBRATION if options["calibration"] == PUBLIC else CALIBRATION)
    return script_code(script, module_name(options["method"]), *beside)


def cell_code(study: dict, cell: Cell, script: str = "train_cell") -> str | list[str]:
    """The path of a file that lists the code of a cell's job (`method_code`)."""
    options = cell.options(study)
    paid = f"-{options['tuning']['pay']}" if pays(options) else ""
    if "calibration" in options:
        paid += "-calibrated-publicly" if options["calibration"] == PUBLIC else "-calibrated"
    by = f"-{study['evaluation']['metrics'][0]}" if script == "tune_entry" else ""  # another study may use another
    files = method_code(study, options, script)
    try:
        return list_code(files, paths.CODE_LIST.format(script=script, method=f"{options['method']}{paid}{by}"))
    except (OSError, StudyError):  # results cannot be written to, which is said before anything runs
        return files


def cell_hash(study: dict, cell: Cell, script: str = "train_cell") -> str:
    """A hash of the code of a cell's job (`method_code`)."""
    return library_hash(method_code(study, cell.options(study), script))


def bundle_code(study: dict, features: str) -> list[str]:
    """The code of the script that writes a bundle, for every kind of model and the feature set's extractor."""
    models = [module for module, _ in MODELS.values()]
    extractor = extractor_modules(study["features"][features])
    return script_code("write_bundle", *models, *extractor, *metric_modules(study))


def check_modules(study: dict) -> None:
    """Check that every reader and extractor in the config has a module whose imports exist.

    Raises:
        StudyError: one has not.
    """
    for features in study["features"].values():
        closure(*extractor_modules(features))
    for source in (*study["datasets"].values(), *study["public"].values()):
        closure(f"dpstudy.data.readers.{source['reader']}")


def report_templates() -> list[str]:
    """The report's templates."""
    return sorted(map(relative, (PACKAGE / "report" / "templates").glob("*.html.j2")))


def paper_template() -> str:
    """The paper's template."""
    return relative(PACKAGE / "tables" / "templates" / "paper.tex.j2")


def published_files() -> list[str]:
    """The files of the papers' numbers and claims."""
    files = (RESULTS, HYPERPARAMETERS, ARCHITECTURES, TIMINGS, DISTANCES, LEAKS, GROUPS, ROLES)
    return list(map(relative, (*files, *sorted(CLAIMS.glob("*.yaml")))))


def searching_code(study: dict, cell: Cell) -> str | list[str]:
    """The list of code files of a cell's hyper-parameter search."""
    return cell_code(study, cell, "tune_entry")
