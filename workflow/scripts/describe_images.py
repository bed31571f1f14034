"""Describe the images of one shard for de-duplication."""

from this_workflow import job

from dpstudy.data.prepare import data_root
from dpstudy.dedup.describe import describe_shard

if __name__ == "__main__":
    with job(snakemake.log[0]):
        params, wildcards = snakemake.params, snakemake.wildcards
        describe_shard(
            f"results/data/{wildcards.source}/{wildcards.split}",
            int(wildcards.shard),
            snakemake.output.description,
            private=params.private,
            embedding=params.embedding,
            backbone_folder=params.backbone,
            data_root=data_root(snakemake.config.get("data_root", "data")),
        )
