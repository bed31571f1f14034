"""Add up the sufficient statistics that several jobs computed on shares of one split of a feature set."""

from this_workflow import job

from dpstudy.methods.sufficient_statistics import add_up

if __name__ == "__main__":
    with job(snakemake.log[0]):
        add_up(snakemake.input.shares).save(snakemake.output[0])
