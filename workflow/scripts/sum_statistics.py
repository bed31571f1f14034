"""Sum what least squares needs over the private records of a feature set, in one pass."""

from dpstudy.features import shards
from dpstudy.job import job
from dpstudy.methods.sufficient_statistics import accumulate
from dpstudy.progress import progress

if __name__ == "__main__":
    with job(snakemake.log[0]):
        wildcards = snakemake.wildcards
        folder = f"results/features/{wildcards.dataset}/{wildcards.features}/train"
        manifest = shards.read_manifest(folder)
        kept = next(iter(snakemake.input.get("kept", [])), None)
        tables = progress(shards.iterate(folder, kept=kept), "statistics", total=len(manifest["shards"]))
        accumulate(
            ((table.features, table.labels) for table in tables),
            len(manifest["classes"]),
            float(wildcards.clip),
            snakemake.params.positives,
            per_class=wildcards.grams == "per-class",
        ).save(snakemake.output[0])
