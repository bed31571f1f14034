"""Find candidate copies of private images in one shard of a public set."""

from this_workflow import job

from dpstudy.dedup.jobs import Shard, search_shard

if __name__ == "__main__":
    with job(snakemake.log[0]):
        params = snakemake.params
        private = [(name, Shard(*shard)) for name, *shard in params.private]
        search_shard(Shard(*params.public), private, snakemake.input.basis, snakemake.output.found)
