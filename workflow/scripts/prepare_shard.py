"""Read one part of one split of a data set and write it as a parquet shard."""

from pathlib import Path

from this_workflow import job

from dpstudy.data import shards
from dpstudy.data.plant import plant
from dpstudy.data.prepare import data_root, prepare_shard


def planting(options: dict, files: list[str]):
    """A change of the rows that plants private images, where the config asks for it and this is the shard."""
    if not files:
        return None
    private = shards.load(Path(files[0]).parent)
    return lambda records: plant(records, private, options["count"], options["seed"])


if __name__ == "__main__":
    with job(snakemake.log[0]):
        wildcards, params = snakemake.wildcards, snakemake.params
        # Not parameters of the rule: another delta, or more positives, would then read everything anew.
        uses = snakemake.config["datasets"].get(wildcards.source, {})
        prepare_shard(
            wildcards.source,
            params.options,
            data_root(snakemake.config.get("data_root", "data")),
            wildcards.split,
            int(wildcards.shard),
            snakemake.output.shard,
            params.private,
            planting(params.options.get("plant"), list(snakemake.input.get("planted", []))),
            uses.get("delta"),
            uses.get("positives", 1) if params.private else None,
            params.numbered,
        )
