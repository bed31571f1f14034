"""Compute the image descriptors of one shard for de-duplication."""

from this_workflow import job

from dpstudy.dedup.describe import Embedding, describe_shard

if __name__ == "__main__":
    with job(snakemake.log[0]):
        params, shard = snakemake.params, int(snakemake.wildcards.shard)
        embedding = Embedding(params.embedding, params.backbone, params.where.data_root)
        describe_shard(params.folder, shard, snakemake.output.description, embedding, private=params.private)
