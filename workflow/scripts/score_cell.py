"""Say what the scores of a cell's models are worth."""

from this_workflow import job

from dpstudy.study.scoring import score_cell

if __name__ == "__main__":
    with job(snakemake.log[0]):
        params, files = snakemake.params, snakemake.input
        score_cell(files.run, list(files.scores), params.evaluation, params.library, snakemake.output.metrics)
