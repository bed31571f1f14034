"""dpstudy: reproducible studies of differentially private image classification.

snakemake --cores all                                    the study in config.yaml
snakemake --cores all --configfile studies/NAME.yaml     another study, instead of it
"""

from snakemake.utils import min_version

min_version("9.0")

# Only where no study is given: Snakemake would merge the two.
if not workflow.configfiles:

    configfile: "config.yaml"


include: "workflow/rules/place.smk"
include: f"{RULES}/common.smk"
include: f"{RULES}/data.smk"
include: f"{RULES}/dedup.smk"
include: f"{RULES}/pretrain.smk"
include: f"{RULES}/fits.smk"
include: f"{RULES}/features.smk"
include: f"{RULES}/stats.smk"
include: f"{RULES}/tune.smk"
include: f"{RULES}/train.smk"
include: f"{RULES}/audit.smk"
include: f"{RULES}/black_box.smk"
include: f"{RULES}/evaluate.smk"
include: f"{RULES}/tables.smk"
include: f"{RULES}/paper.smk"
include: f"{RULES}/report.smk"
include: f"{RULES}/release.smk"


localrules:
    all,


rule all:
    default_target: True
    input:
        targets.final_targets(STUDY),
        # By name: what only other files ask for is not missed once those are there.
        targets.cell_files(STUDY, paths.METRICS, paths.RUN, paths.LEDGER, paths.MODEL),


told(start.when_read, workflow, STUDY)


onstart:
    told(start.look_before, workflow, STUDY)


onsuccess:
    start.announce(workflow, STUDY)
