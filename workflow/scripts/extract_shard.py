"""Extract the features of one shard of images."""

from this_workflow import job

from dpstudy.features.extract import extract_shard

if __name__ == "__main__":
    with job(snakemake.log[0], gpus=snakemake.resources.get("gpu", 0)):
        params = snakemake.params
        extract_shard(
            params.options,
            params.images,
            int(snakemake.wildcards.shard),
            snakemake.output.shard,
            private=True,
            backbone_folder=params.backbone,
            fit_folder=params.fit,
            data_root=params.where.data_root,
        )
