"""Write the manifest of the finished feature shards of one split."""

from this_workflow import job

from dpstudy.features.extract import prepare_manifest

if __name__ == "__main__":
    with job(snakemake.log[0]):
        prepare_manifest(
            snakemake.wildcards.features,
            snakemake.params.images,
            list(snakemake.input.shards),
            snakemake.output.manifest,
            private=True,
        )
