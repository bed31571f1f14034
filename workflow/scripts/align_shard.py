"""Find copies of one private shard's images in a public set."""

from this_workflow import job

from dpstudy.dedup.jobs import Shard, align_shard

if __name__ == "__main__":
    with job(snakemake.log[0]):
        params, inputs, wildcards = snakemake.params, snakemake.input, snakemake.wildcards
        align_shard(
            [(split, Shard(*shard)) for split, *shard in params.public],
            inputs.searched,
            (wildcards.dataset, wildcards.split),
            f"{wildcards.dataset}/{wildcards.split}/{wildcards.shard}",
            Shard(*params.private),
            inputs.basis,
            snakemake.output.part,
            params.rule,
        )
