"""Write the manifest of the finished shards of one split: rows, classes, and SHA-256 of each."""

from this_workflow import job

from dpstudy.data.prepare import prepare_manifest

if __name__ == "__main__":
    with job(snakemake.log[0]):
        prepare_manifest(
            snakemake.wildcards.source,
            snakemake.params.options,
            snakemake.params.where.data_root,
            snakemake.wildcards.split,
            list(snakemake.input.shards),
            snakemake.output.manifest,
            snakemake.params.private,
            list(snakemake.input.get("others", [])),
        )
