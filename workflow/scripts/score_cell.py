"""Compute the metrics of a cell from the scores of its models."""

from this_workflow import job

from dpstudy.cell.bound import check_cells, own_binding
from dpstudy.jobs.scoring import score_cell

if __name__ == "__main__":
    with job(snakemake.log[0]):
        params, files = snakemake.params, snakemake.input
        check_cells([params.cell], own_binding(), metrics=False)
        score_cell(files.run, list(files.scores), params.evaluation, params.library, snakemake.output.metrics)
