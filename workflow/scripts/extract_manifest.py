"""Write the manifest of the finished feature shards of one split."""

from this_workflow import job

from dpstudy.features.extract import prepare_manifest

if __name__ == "__main__":
    with job(snakemake.log[0]):
        shards, images = list(snakemake.input.shards), snakemake.params.images
        prepare_manifest(snakemake.wildcards.features, images, shards, snakemake.output.manifest)
