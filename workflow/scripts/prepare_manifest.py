"""Describe the finished shards of one split: rows, classes, SHA-256 of each."""

from this_workflow import job

from dpstudy.data.prepare import data_root, prepare_manifest

if __name__ == "__main__":
    with job(snakemake.log[0]):
        prepare_manifest(
            snakemake.wildcards.source,
            snakemake.params.options,
            data_root(snakemake.config.get("data_root", "data")),
            snakemake.wildcards.split,
            list(snakemake.input.shards),
            snakemake.output.manifest,
            snakemake.params.private,
            list(snakemake.input.get("others", [])),
        )
