"""Read one part of one split of a data set and write it as a parquet shard."""

from pathlib import Path

from this_workflow import job

from dpstudy.data import shards
from dpstudy.data.plant import plant
from dpstudy.data.prepare import prepare_shard


def planting(options: dict, files: list[str]):
    """A function that plants private images in a public shard, for tests of de-duplication; None for other shards."""
    if not files:
        return None
    private = shards.load(Path(files[0]).parent)
    return lambda records: plant(records, private, options["count"], options["seed"])


if __name__ == "__main__":
    with job(snakemake.log[0]):
        wildcards, params = snakemake.wildcards, snakemake.params
        prepare_shard(
            wildcards.source,
            params.options,
            params.checked_by.data_root,
            wildcards.split,
            int(wildcards.shard),
            snakemake.output.shard,
            params.private,
            planting(params.options.get("plant"), list(snakemake.input.get("planted", []))),
            params.checked_by.delta,
            params.checked_by.positives,
            params.numbered,
        )
