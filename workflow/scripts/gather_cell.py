"""Put the seeds of a cell together: each was trained by a job of its own."""

import os

from this_workflow import job

from dpstudy.study.gather import gather_cell

if __name__ == "__main__":
    with job(snakemake.log[0]):
        runs = [os.path.dirname(path) for path in snakemake.input.runs if path.endswith("/run.json")]
        params = snakemake.params
        gather_cell(runs, list(params.seeds), params.fingerprint, dict(snakemake.output.items()))
