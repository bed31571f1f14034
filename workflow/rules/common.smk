# What the rules share: the checked config, and how they ask dpstudy.plan, where all that they say is worked out.

import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError

LIBRARY = Path(str(workflow.current_basedir)).resolve().with_name("dpstudy")  # not of one that has this as a module
sys.path.insert(0, str(LIBRARY.parent))

import dpstudy

if (imported := Path(dpstudy.__file__ or "").resolve().parent) != LIBRARY:
    raise WorkflowError(
        f"dpstudy: nothing was run: {imported} is what Python imports as dpstudy, and not this workflow's own: "
        "something loads it when Python starts (a .pth file, or sitecustomize); take it out of the environment"
    )

from dpstudy.core.errors import StudyError
from dpstudy.plan import (
    code,
    data_resources,
    dedup,
    documents,
    fingerprints,
    paths,
    publics,
    releases,
    resources,
    sources,
    start,
    targets,
    training,
    wildcards as names,
)
from dpstudy.provenance.hashes import library_hash


def told(function, *arguments, **fixed):
    """What a function says; a mistake of the user's ends the run with its sentence."""
    try:
        return function(*arguments, **fixed)
    except StudyError as error:
        raise WorkflowError(f"dpstudy: {error}")


try:
    STUDY = start.read_study(workflow, config)
except StudyError as error:
    raise WorkflowError(str(error))
ENVIRONMENT = "../../envs/study.yaml"


wildcard_constraints:
    **names.constraints(STUDY),


def ask(function, *wanted, **fixed):
    """An input or parameter: what a function says of the study, these wildcards ("cell": the cell) and `fixed`."""

    def asked(wildcards):
        found = [names.cell_of(wildcards) if name == "cell" else wildcards[name] for name in wanted]
        return told(function, STUDY, *found, **fixed)

    return asked


def hash_of(function, *wanted):
    """A parameter: a hash of the source files that a function names."""
    return ask(lambda *found: library_hash(function(*found)), *wanted)


def grown(amount):
    """A resource, of which a job that failed is given more when it is sent again (`--retries`): twice, three times.

    What ran out of memory or time on a cluster is then not killed at the same place again.
    """
    return lambda wildcards, attempt: attempt * amount


def peak(megabytes):
    """mem_mb, the most resident memory that a job takes (python -m benchmarks memory measures it); in a cluster with that
    of the Snakemake which each job has of its own. Grown with the attempt."""

    def amount(wildcards, input, attempt):
        most = megabytes(STUDY, wildcards, input) if callable(megabytes) else megabytes
        return attempt * (most + (0 if workflow.local_exec else resources.NESTED_MB))

    return amount


def kept_scores(path):
    """Scores as an output, which go as soon as metrics are made of them where a study does not keep them."""
    return path if STUDY["evaluation"]["keep_scores"] else temp(path)
