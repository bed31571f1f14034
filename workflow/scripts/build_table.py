"""Write a table of cells, published values beside ours, as LaTeX and CSV."""

from this_workflow import job

from dpstudy.tables.build import build_table
from dpstudy.tables.results import Results

if __name__ == "__main__":
    with job(snakemake.log[0]):
        params, outputs = snakemake.params, snakemake.output
        results = Results.open(params.axes, snakemake.input.summary, params.documents, snakemake.input)
        build_table(snakemake.wildcards.table, params.spec, results, outputs.tex, outputs.csv)
