"""Sum what least squares needs over the private records of one split of a feature set, or a share, in one pass."""

from this_workflow import job

from dpstudy.features import shards
from dpstudy.features.batches import ShardBatches
from dpstudy.methods.sufficient_statistics import accumulate

if __name__ == "__main__":
    with job(snakemake.log[0], gpus=snakemake.resources.get("gpu", 0)):
        wildcards, shares = snakemake.wildcards, snakemake.params.get("shares", 1)
        folder = f"results/features/{wildcards.dataset}/{wildcards.features}/{wildcards.split}"
        share = (int(wildcards.get("share", 0)), shares)
        accumulate(
            ShardBatches([folder], kept=snakemake.input.get("kept", []), share=share),
            len(shards.read_manifest(folder)["classes"]),
            float(wildcards.clip),
            snakemake.params.positives,
            per_class=wildcards.grams == "per-class",
            threads=snakemake.threads,
            may_be_empty=shares > 1,
            exact=snakemake.params.exact,
        ).save(snakemake.output[0])
