"""Compute the image descriptors of one shard for de-duplication."""

from this_workflow import job

from dpstudy.dedup.describe import describe_shard

if __name__ == "__main__":
    with job(snakemake.log[0]):
        params = snakemake.params
        describe_shard(
            params.folder,
            int(snakemake.wildcards.shard),
            snakemake.output.description,
            private=params.private,
            embedding=params.embedding,
            backbone_folder=params.backbone,
            data_root=params.where.data_root,
        )
