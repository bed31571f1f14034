# What the rules share: the checked config, names that wildcards may take, and look-ups from it.

import os
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError

sys.path.insert(0, str(Path(workflow.basedir) / "workflow"))

from dpstudy.data.names import split_names
from dpstudy.errors import StudyError
from dpstudy.study import cells as study_cells
from dpstudy.study import config as study_config
from dpstudy.study.code import closure
from dpstudy.study.provenance import cell_fingerprint, config_hash, library_hash
from dpstudy.study.schema import method_schema

try:
    STUDY = study_config.load(config)
    study_config.check_locations(STUDY)
except StudyError as error:
    raise WorkflowError(f"{' '.join(map(str, workflow.configfiles)) or 'config.yaml'}: {error}")

CELLS = study_cells.unfold(STUDY)
SOURCES = {**STUDY["datasets"], **STUDY["public"]}
PLANTED = {name for name, public in STUDY["public"].items() if "plant" in public}
NO_MATCH = "(?!)"  # a pattern for a wildcard that this study leaves without values


def alternatives(names):
    """A pattern that matches exactly these names."""
    return "|".join(re.escape(str(name)) for name in names) or NO_MATCH


def entries_where(curve):
    """Method entries that do, or do not, train in steps."""
    return [
        name for name, entry in STUDY["methods"].items() if method_schema(entry["method"])["x-curve"] == curve
    ]


wildcard_constraints:
    dataset=alternatives(STUDY["datasets"]),
    source=alternatives(SOURCES),
    public=alternatives(STUDY["public"]),
    backbone=alternatives(STUDY["backbones"]),
    features=alternatives(STUDY["features"]),
    entry=alternatives(STUDY["methods"]),
    epsilon=alternatives(STUDY["epsilons"]),
    table=alternatives(STUDY["tables"]),
    figure=alternatives(STUDY["figures"]),
    split="train|validation|test",
    shard="[0-9]{5}",
    clip=r"inf|[0-9.e+-]+",
    grams="shared|per-class",


def code(script, *modules):
    """The script and every library file that it and the modules chosen by name import."""
    return closure(str(Path("workflow/scripts") / script), *modules)


def splits_of(source):
    """The splits that a data set is cut into."""
    return split_names(SOURCES[source], private=source in STUDY["datasets"])


def parts(folder, source):
    """The shards of one split of a data set, below a folder."""
    return [f"{folder}/part-{shard:05d}.parquet" for shard in range(SOURCES[source]["shards"])]


def with_manifest(folder, source):
    """The manifest and the shards of one split."""
    return [f"{folder}/manifest.json", *parts(folder, source)]


def options_of(wildcards):
    """The hyper-parameters of a cell, overrides applied."""
    return as_cell(wildcards).options(STUDY)


def as_cell(wildcards):
    """The cell that wildcards name."""
    return study_cells.Cell(wildcards.dataset, wildcards.features, wildcards.entry, wildcards.epsilon)


def public_of(features):
    """The public set that a feature set was trained on, or None."""
    backbone = STUDY["features"][features].get("backbone")
    return STUDY["backbones"][backbone]["public"] if backbone else None


def kept_for(features):
    """What de-duplication kept, where private records that match the public set are dropped; else nothing."""
    public = public_of(features)
    return [f"results/dedup/{public}/kept.parquet"] if public and STUDY["dedup"]["drop"] == "private" else []


def not_accounted(features):
    """What a cell on these features does outside its ledger."""
    public = public_of(features)
    if public and STUDY["dedup"]["drop"] == "public":
        return [
            f"The network that made the features was trained on images of {public!r} that were chosen by comparing "
            "them with private records (de-duplication with drop: public)."
        ]
    return []


def gpu():
    """GPUs that a job asks for: one where this machine has any. A profile's set-resources overrides it."""
    return int(os.path.exists("/dev/nvidia0"))


def memory(megabytes_least, factor):
    """mem_mb from the size of the inputs."""
    return lambda wildcards, input: int(megabytes_least + factor * input.size_mb)


def final_targets():
    """Everything that a study is asked for."""
    return [
        *(f"results/tables/{name}.{kind}" for name in STUDY["tables"] for kind in ("tex", "csv")),
        *(f"results/figures/{name}.{kind}" for name in STUDY["figures"] for kind in ("pdf", "png", "csv")),
        "results/summary.csv",
        "results/summary.parquet",
        "results/privacy/total.json",
        "results/report/index.html",
    ]


def announce(paths):
    """Name what the study made."""
    print(f"\nStudy {STUDY['study']!r} is complete: {len(CELLS)} cells, {len(STUDY['seeds'])} seeds each.")
    for path in paths:
        if os.path.exists(path):
            print(f"  {path}")
