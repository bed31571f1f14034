"""Lay cells out as a table, published values beside ours: LaTeX and CSV."""

from this_workflow import job

from dpstudy.tables.build import build
from dpstudy.tables.results import Results

if __name__ == "__main__":
    with job(snakemake.log[0]):
        params, summary = snakemake.params, snakemake.input.summary
        documents = (params.ledgers, params.metrics, params.trials, params.curves, params.audits, params.black_boxes)
        results = Results.read(params.axes, summary, *documents, params.splits)
        build(snakemake.wildcards.table, params.spec, results, snakemake.output.tex, snakemake.output.csv)
