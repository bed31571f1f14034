"""Compute the sufficient statistics of least squares on one split of a feature set, or a share of it, in one pass."""

from this_workflow import job

from dpstudy.features import shards
from dpstudy.features.batches import ShardBatches
from dpstudy.methods.averaging import weights_by_name
from dpstudy.methods.sufficient_statistics import accumulate

if __name__ == "__main__":
    with job(snakemake.log[0], gpus=snakemake.resources.get("gpu", 0)):
        wildcards, params = snakemake.wildcards, snakemake.params
        manifest, counts = shards.read_manifest(params.folder), dict(params.contributions)
        weights = weights_by_name(counts.pop("class_weights", {}), manifest["classes"], manifest["multi_label"])
        share = int(wildcards.get("share", 0)), params.shares
        accumulate(
            ShardBatches([params.folder], kept=snakemake.input.get("kept", []), share=share),
            len(manifest["classes"]),
            float(wildcards.clip),
            per_class=wildcards.grams == "per-class",
            threads=snakemake.threads,
            may_be_empty=params.shares > 1,
            exact=params.exact,
            class_weights=weights,
            **counts,
        ).save(snakemake.output[0])
