"""Put the seeds of a cell together: each was trained by a job of its own."""

import os
from pathlib import Path

from this_workflow import job

from dpstudy.cell.bound import Binding, PaidHashes, refuse
from dpstudy.jobs.gather import gather_cell
from dpstudy.privacy.spending import BOOK, Spending

if __name__ == "__main__":
    with job(snakemake.log[0]):
        runs = [os.path.dirname(path) for path in snakemake.input.runs if path.endswith("/run.json")]
        params = snakemake.params
        cell = Path(snakemake.output.run).parent.relative_to("results/cells").as_posix()
        refuse(Binding(PaidHashes(Spending(BOOK))).faults_of_seeds(cell, params.seeds))
        gather_cell(runs, list(params.seeds), params.fingerprint, dict(snakemake.output.items()))
