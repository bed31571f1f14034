"""Extract the features of one shard of images."""

from this_workflow import job

from dpstudy.features.extract import extract_shard

if __name__ == "__main__":
    with job(snakemake.log[0], gpus=snakemake.resources.get("gpu", 0)):
        params, shard = snakemake.params, int(snakemake.wildcards.shard)
        folders = {"backbone_folder": params.backbone, "fit_folder": params.fit, "data_root": params.where.data_root}
        extract_shard(params.options, params.images, shard, snakemake.output.shard, **folders)
