"""Draw accuracy against epsilon: PDF, PNG and the numbers as CSV."""

from dpstudy.job import job
from dpstudy.tables.figures import build_figure

if __name__ == "__main__":
    with job(snakemake.log[0]):
        build_figure(
            snakemake.wildcards.figure,
            snakemake.params.spec,
            snakemake.params.axes,
            snakemake.input.summary,
            snakemake.output.pdf,
            snakemake.output.png,
            snakemake.output.csv,
        )
