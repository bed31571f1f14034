"""Pre-train a network on a public data set."""

from dpstudy.features.pretrain import pretrain
from dpstudy.job import job

if __name__ == "__main__":
    with job(snakemake.log[0]):
        params = snakemake.params
        pretrain(
            snakemake.wildcards.backbone,
            params.options,
            f"results/data/{params.options['public']}",
            snakemake.output.model,
            snakemake.output.card,
            kept=next(iter(snakemake.input.get("kept", [])), None),
            drop=params.drop,
        )
