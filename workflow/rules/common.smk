# What the rules share: the checked config, names that wildcards may take, and look-ups from it.

import functools
import json
import os
import re
import sys
from collections import Counter
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.logging import logger

sys.path.insert(0, str(Path(workflow.basedir) / "workflow"))

import dpstudy

if (imported := Path(dpstudy.__file__ or "").resolve().parent) != Path(workflow.basedir, "workflow/dpstudy").resolve():
    raise WorkflowError(
        f"dpstudy: nothing was run: {imported} is what Python imports as dpstudy, and not this workflow's own: "
        "something loads it when Python starts (a .pth file, or sitecustomize); take it out of the environment"
    )

from dpstudy.core.arrays import has_driver
from dpstudy.data.names import DRAWN, caveats, may_be_numbered, split_names
from dpstudy.data.own import is_confidential, own_data, own_reader, own_sources, test_is_public
from dpstudy.data.own_names import BLOCK_BYTES
from dpstudy.data.readers import CROPPING
from dpstudy.data.shard_size import shard_size, unpacked_bytes
from dpstudy.core.errors import StudyError
from dpstudy.evaluation.metrics import modules as metric_modules
from dpstudy.evaluation.on_training import ON_TRAINING, UNPAID
from dpstudy.features import extractor_modules
from dpstudy.core.files import write_json
from dpstudy.core.job import check_writable, keep_to_owner, name_workflow
from dpstudy.methods import module_name
from dpstudy.methods.network_memory import micro_batch_mb
from dpstudy.models.kinds import MODELS
from dpstudy.privacy.spending import BOOK, Spending
from dpstudy.config import black_box_options
from dpstudy.config import cells as study_cells
from dpstudy.config import loading as study_config
from dpstudy.config import locations as study_locations
from dpstudy.cell.bound import Binding, PaidHashes, refuse
from dpstudy.cell.bound_before import BoundBefore
from dpstudy.provenance.code import WORKFLOW, closure, relative
from dpstudy.provenance.imports import read_imports
from dpstudy.config.origins import UNMATCHED, publics_trained_on
from dpstudy.plan import documents as plan_documents
from dpstudy.plan.outside import inherited_choices, is_chosen, is_planted, outside_ledger
from dpstudy.cell.errata import own_rows
from dpstudy.cell.paid_models import Due, PaidModels, guard
from dpstudy.provenance.hashes import cell_fingerprint, config_hash, evaluation_fingerprint, library_hash, list_code
from dpstudy.config.public_points import reads_public
from dpstudy.provenance.records import RECORDS, keep_records, outdate, record_own_jobs, unrecorded
from dpstudy.schema.methods import method_schema
from dpstudy.config.narrowing import study_of
from dpstudy.config.tuned import PAID_TUNING, pays, unpaid_searches
from dpstudy.tables.pdflatex import find_latex

name_workflow()
read_imports(Path(".snakemake/dpstudy-imports.json"))

try:
    STUDY = study_config.load(config)
    study_locations.check_locations(STUDY)
    for features in STUDY["features"].values():
        closure(*extractor_modules(features["extractor"]))
    for source in (*STUDY["datasets"].values(), *STUDY["public"].values()):
        closure(f"dpstudy.data.readers.{source['reader']}")
    if is_confidential(STUDY):
        keep_to_owner("results", ".snakemake", RECORDS)
except StudyError as error:
    raise WorkflowError(f"{' '.join(map(str, workflow.configfiles)) or 'config.yaml'}: {error}")

CELLS = study_cells.unfold(STUDY)
SOURCES = {**STUDY["datasets"], **STUDY["public"]}
PLANTED = {name for name, public in STUDY["public"].items() if "plant" in public}
CELL = "{dataset}/{features}/{entry}/eps={epsilon}"
RUN = f"results/runs/{CELL}/seed={{seed}}"
SUMS = "results/private/statistics/{dataset}/{features}/{split}/clip={clip}/{grams}"
GRAPH = "results/benchmarks/graph.json"
SMALL_IMAGES = ("digits", "glyphs", "dead_leaves", "strokes", "cutouts", "scenes", "idx", "cifar", "mosaics")
NO_MATCH = "(?!)"  # a pattern for a wildcard that this study leaves without values


def alternatives(names):
    """A pattern that matches exactly these names."""
    return "|".join(re.escape(str(name)) for name in names) or NO_MATCH


def entries_where(curve, per_seed=None, audited=None):
    """Method entries that do, or do not, train in steps; of those that do, or do not, train each seed in a job, or
    attack their own claim."""
    chosen = []
    for name, entry in STUDY["methods"].items():
        schema = method_schema(entry["method"])
        wanted = ((per_seed, "x-per-seed"), (audited, "x-audited"))
        if schema["x-curve"] == curve and all(value in (None, schema.get(key, False)) for value, key in wanted):
            chosen.append(name)
    return chosen


wildcard_constraints:
    dataset=alternatives(STUDY["datasets"]),
    source=alternatives(SOURCES),
    public=alternatives(STUDY["public"]),
    backbone=alternatives(STUDY["backbones"]),
    fit=alternatives(STUDY["fits"]),
    features=alternatives(STUDY["features"]),
    entry=alternatives(STUDY["methods"]),
    epsilon=alternatives(STUDY["epsilons"]),
    table=alternatives(STUDY["tables"]),
    figure=alternatives(STUDY["figures"]),
    split="train|validation|test",
    shard="[0-9]{5}",
    share="[0-9]{3}",
    clip=r"inf|[0-9.e+-]+",
    grams="shared|per-class",
    seed=alternatives(STUDY["seeds"]),


def code(script, *modules):
    """The script and every library file that it and the modules chosen by name import."""
    return closure(str(WORKFLOW / "scripts" / script), *modules)


def library(script, *modules):
    """A hash of the same, for a job's parameters: of an input Snakemake looks at the content only where its time is later
    than the output's, and code of another version may be older than what the present one made."""
    return library_hash(code(script, *modules))


def metric_code(*more):
    """The modules of the study's metrics, and of others, which scripts find by name."""
    return metric_modules([*STUDY["evaluation"]["metrics"], *more])


@functools.cache
def gpu():
    """GPUs that a job asks for: one where this machine has any, or DPSTUDY_GPU says so. A profile's set-resources
    overrides it."""
    try:
        return int(has_driver())
    except StudyError as error:
        raise WorkflowError(f"dpstudy: {error}")


def grown(amount):
    """A resource, of which a job that failed is given more when it is sent again (`--retries`): twice, three times.

    What ran out of memory or time on a cluster is then not killed at the same place again.
    """
    if callable(amount):
        return lambda wildcards, input, attempt: attempt * amount(wildcards, input)
    return lambda wildcards, attempt: attempt * amount


def final_targets():
    """Everything that a study is asked for."""
    return [
        *(f"results/tables/{name}.{kind}" for name in STUDY["tables"] for kind in ("tex", "csv")),
        *(f"results/figures/{name}.{kind}" for name in STUDY["figures"] for kind in ("pdf", "png", "csv")),
        "results/summary.csv",
        "results/summary.parquet",
        "results/privacy/total.json",
        *certificates(),
        *audits().values(),
        *black_boxes().values(),
        "results/report/index.html",
    ]


def tell_plan():
    """Tell workflow/run.py, where it listens, how many cells were asked for and what is due: rule, wildcards, cell or not."""
    if "DPSTUDY_EVENTS" not in os.environ:
        return
    cells = {
        job for job in workflow.dag.jobs if re.match(r"results/cells/.+/metrics\.json", str(job.output.get("metrics")))
    }
    due = [[job.rule.name, job.wildcards_dict, job in cells] for job in workflow.dag.needrun_jobs() if job.output]
    logger.info(None, extra={"event": "plan", "study": STUDY["study"], "cells": len(cells), "due": due})


def announce(paths):
    """Name what the study made; who asked for single targets knows their names."""
    if all(job.rule.name != "all" for job in workflow.dag.jobs):
        print("\nDone.")
        return
    seeds = len(STUDY["seeds"])
    print(
        f"\nStudy {STUDY['study']!r} is complete: {len(CELLS)} cells, {seeds} {'seed' if seeds == 1 else 'seeds'} each."
    )
    for path in paths:
        if os.path.exists(path):
            print(f"  {path}")


def note_graph():
    """Write which rules feed which in this run, where it is to build the report, which shows it."""
    jobs = list(workflow.dag.jobs)
    if all(job.rule.name != "build_report" for job in jobs):
        return
    dependencies = workflow.dag.dependencies
    readings = Counter((source.rule.name, job.rule.name) for job in jobs for source in dependencies[job])
    edges = [[*edge, count] for edge, count in sorted(readings.items()) if "all" not in edge]
    write_json(GRAPH, {"edges": edges})


def run_here(names):
    """Of a run whose jobs are submitted to a cluster: run those of some rules where Snakemake itself runs.

    Each takes one of the resource `here`, which the profile has as many of as Snakemake runs such jobs at a time: a
    thousand that wait for their turn would keep `jobs` from being submitted.
    """
    known = [rule.name for rule in workflow.rules]
    if unknown := [name for name in names if name not in known]:
        raise WorkflowError(f"dpstudy: DPSTUDY_HERE names {unknown[0]!r}, and the rules are {', '.join(known)}")
    workflow.localrules(*names)
    for name in names:
        workflow.get_rule(name).resources["here"] = 1


def unthrottle():
    """Lift Snakemake's default limit of 100 jobs a second; one of the user's own stays.

    With a limit, each look at the ready jobs makes another one a second later, for ever: as many every second as jobs
    have ended (Snakemake 9.27). After a few hundred jobs that took a core.
    """
    limiter = workflow.scheduler.job_rate_limiter
    if limiter and (limiter.max_jobs, limiter.timespan) == (100, 1):
        workflow.scheduler.job_rate_limiter = None


def look_through_own_data():
    """Say what is wrong with a user's own table or folder before anything runs, where it is about to be read."""
    due = {job.wildcards_dict["source"] for job in workflow.dag.needrun_jobs() if job.rule.name == "prepare_shard"}
    own = [name for name, entry in STUDY["datasets"].items() if name in due and own_reader(entry)]
    if own and not workflow.touch:
        from dpstudy.data.prepare import look_through

        root = Path(study_locations.data_root(STUDY))
        for name in own:
            entry = STUDY["datasets"][name]
            try:
                if told := look_through(name, entry, root, entry["delta"], numbered(name)):
                    logger.warning(f"dpstudy: datasets.{name}: {told}")
            except StudyError as error:
                raise WorkflowError(f"dpstudy: nothing was run: {error}")


def look_for_access():
    """Say that nothing can be written before anything runs."""
    try:
        check_writable("results")
    except StudyError as error:
        raise WorkflowError(f"dpstudy: nothing was run: {error}")


def look_for_latex():
    """Say that LaTeX is missing before anything runs, where it is about to be needed."""
    if any(job.rule.name == "compile_paper" for job in workflow.dag.needrun_jobs()) and not workflow.touch:
        try:
            find_latex()
        except StudyError as error:
            raise WorkflowError(f"dpstudy: nothing was run: {error}")


def due_training(wildcards, seeds, outputs):
    """A training that may have been paid for before."""
    cell = study_cells.Cell(wildcards["dataset"], wildcards["features"], wildcards["entry"], wildcards["epsilon"])
    return Due(cell.path, seeds, outputs["ledger"], outputs, fingerprint_of(cell, seeds))


def guard_paid_models():
    """Keep what this run is about to remove of models that secure noise has paid for, and what they learned from; refuse
    it where they would be lost."""
    spent, secure = Path(BOOK), STUDY["noise"] == "secure"
    if workflow.touch or not (secure or spent.exists()):
        return
    jobs, book = list(workflow.dag.needrun_jobs()), Spending(spent, STUDY["release"].get("spend_again", False))
    due = [
        due_training(job.wildcards_dict, job.params.seeds, dict(job.output.items()))
        for job in jobs
        if str(job.rule.script).endswith("train_cell.py")
    ]
    trained = {training.cell for training in due}
    scored = {CELL.format(**job.wildcards_dict) for job in jobs if job.rule.name == "score_cell"}
    try:
        if guard(due, book, secure, others=not scored <= trained):
            workflow.scheduler.keepgoing = True
        if secure:
            note_records(book, {path for job in jobs for path in job.output})
    except StudyError as error:
        raise WorkflowError(f"dpstudy: {error}")


def note_records(book, made_anew):
    """Of what paid models learned from, note which records it is, as long as it is there."""
    paid = PaidModels(book)
    read = {path for cell in CELLS if cell.path in paid.cells() for path in data_of(cell).values()}
    for path in sorted(read & made_anew):
        if os.path.exists(path):
            paid.store.note_content(path)


def tell_kept():
    """Tell workflow/status.py, where it asks, which trainings (cell, seeds) are taken as they are if they are due."""
    path = os.environ.get("DPSTUDY_KEPT")
    if path is None or STUDY["noise"] != "secure":
        return
    names, kept = {"run": "run.json", "ledger": "ledger.json"}, []
    deep = entries_where(curve=True, per_seed=True)
    try:
        paid = PaidModels(Spending(BOOK))
        for cell in CELLS:
            axes = {"dataset": cell.dataset, "features": cell.features, "entry": cell.entry, "epsilon": cell.epsilon}
            for seeds in [[seed] for seed in STUDY["seeds"]] if cell.entry in deep else [STUDY["seeds"]]:
                folder = RUN.format(**axes, seed=seeds[0]) if cell.entry in deep else f"results/cells/{cell.path}"
                due = due_training(axes, seeds, {key: f"{folder}/{name}" for key, name in names.items()})
                if paid.config_of(due) == due.fingerprint:
                    kept.append([cell.path, seeds])
        write_json(path, kept)
    except StudyError as error:
        raise WorkflowError(f"dpstudy: {error}")
