"""Count how many altered copies of private images de-duplication detects."""

from this_workflow import job

from dpstudy.dedup.calibrate import calibrate
from dpstudy.dedup.describe import Embedding

if __name__ == "__main__":
    with job(snakemake.log[0]):
        params, inputs = snakemake.params, snakemake.input
        calibrate(
            params.folder,
            inputs.private,
            inputs.public,
            inputs.basis,
            snakemake.output.counts,
            Embedding(params.embedding, params.backbone, params.where.data_root),
            rule=params.rule,
            sample=params.sample,
        )
