"""Extract the features of one shard of images."""

from this_workflow import job

from dpstudy.data.prepare import data_root
from dpstudy.features.extract import extract_shard

if __name__ == "__main__":
    with job(snakemake.log[0], gpus=snakemake.resources.get("gpu", 0)):
        wildcards, params = snakemake.wildcards, snakemake.params
        extract_shard(
            params.options,
            f"results/data/{wildcards.dataset}/{wildcards.split}",
            int(wildcards.shard),
            snakemake.output.shard,
            private=True,
            backbone_folder=params.backbone,
            fit_folder=params.fit,
            data_root=data_root(snakemake.config.get("data_root", "data")),
        )
