"""dpstudy: reproducible studies of differentially private image classification.

snakemake --cores all                                    the study in config.yaml
snakemake --cores all --configfile studies/NAME.yaml     another study, instead of it
"""

from snakemake.utils import min_version

min_version("9.0")

# Only where no study is given: Snakemake would merge the two.
if not workflow.configfiles:

    configfile: "config.yaml"


include: "workflow/rules/common.smk"
include: "workflow/rules/publics.smk"
include: "workflow/rules/lookups_data.smk"
include: "workflow/rules/lookups.smk"
include: "workflow/rules/origins.smk"
include: "workflow/rules/memory.smk"
include: "workflow/rules/selected.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/dedup.smk"
include: "workflow/rules/pretrain.smk"
include: "workflow/rules/fits.smk"
include: "workflow/rules/features.smk"
include: "workflow/rules/stats.smk"
include: "workflow/rules/tune.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/audit.smk"
include: "workflow/rules/black_box.smk"
include: "workflow/rules/evaluate.smk"
include: "workflow/rules/tables.smk"
include: "workflow/rules/paper.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/release.smk"
include: "workflow/rules/records.smk"


localrules:
    all,


rule all:
    default_target: True
    input:
        final_targets(),
        cell_files("metrics.json"),  # by name: what only other files ask for is not missed once those are there


run_here(os.environ.get("DPSTUDY_HERE", "").split())
tell_kept()


onstart:
    unthrottle()
    look_for_access()
    look_for_latex()
    look_through_own_data()
    guard_paid_models()
    look_at_cells()
    note_graph()
    tell_plan()


onsuccess:
    announce(final_targets())
