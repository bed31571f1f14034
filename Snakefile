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
        targets.final_targets(STUDY),
        # By name: what only other files ask for is not missed once those are there.
        targets.cell_files(STUDY, paths.METRICS),


told(internals.run_here, workflow, os.environ.get("DPSTUDY_HERE", "").split())
# workflow/status.py asks which trainings are taken as they are.
if (listed := os.environ.get("DPSTUDY_KEPT")) and STUDY["noise"] == "secure":
    told(before.note_kept, STUDY, listed)


told(start.refuse_module, workflow, STUDY)
internals.tell_when_planned(workflow, lambda: start.look_ahead(workflow, STUDY))


onstart:
    told(start.look_before, workflow, STUDY)


onsuccess:
    start.announce(workflow, STUDY)
