"""Count how many altered copies of private images de-duplication detects."""

from this_workflow import job

from dpstudy.dedup.calibrate import calibrate

if __name__ == "__main__":
    with job(snakemake.log[0]):
        params, inputs = snakemake.params, snakemake.input
        calibrate(
            params.folder,
            inputs.private,
            inputs.public,
            inputs.basis,
            snakemake.output.counts,
            rule=params.rule,
            sample=params.sample,
            embedding=params.embedding,
            backbone_folder=params.backbone,
            data_root=params.where.data_root,
        )
