"""Draw a figure in the style that its spec names: PDF, PNG, SVG and the numbers as CSV."""

from this_workflow import job

from dpstudy.tables.build import build_figure
from dpstudy.tables.results import Results

if __name__ == "__main__":
    with job(snakemake.log[0]):
        params, outputs = snakemake.params, snakemake.output
        results = Results.open(params.axes, snakemake.input.summary, params.documents, snakemake.input)
        build_figure(
            snakemake.wildcards.figure, params.spec, results, outputs.pdf, outputs.png, outputs.csv, outputs.svg
        )
