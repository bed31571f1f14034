"""Count how many changed copies of private images de-duplication finds."""

from this_workflow import job

from dpstudy.data.prepare import data_root
from dpstudy.dedup.calibrate import calibrate

if __name__ == "__main__":
    with job(snakemake.log[0]):
        params, inputs = snakemake.params, snakemake.input
        calibrate(
            f"results/data/{snakemake.wildcards.dataset}/train",
            inputs.private,
            inputs.public,
            inputs.basis,
            snakemake.output.counts,
            rule=params.rule,
            sample=params.sample,
            embedding=params.embedding,
            backbone_folder=params.backbone,
            data_root=data_root(snakemake.config.get("data_root", "data")),
        )
