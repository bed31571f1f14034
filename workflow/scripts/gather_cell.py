"""Gather one cell from its seeds, each of which a separate job trained."""

from this_workflow import job

from dpstudy.cell.bound import own_binding, refuse
from dpstudy.jobs.gather import gather_cell

if __name__ == "__main__":
    with job(snakemake.log[0]):
        params = snakemake.params
        refuse(own_binding().faults_of_seeds(params.cell, params.seeds))
        gather_cell(params.folders, list(params.seeds), params.fingerprint, dict(snakemake.output.items()))
