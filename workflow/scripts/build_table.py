"""Lay cells out as a table, published values beside ours: LaTeX and CSV."""

from dpstudy.job import job
from dpstudy.tables.latex import build_table

if __name__ == "__main__":
    with job(snakemake.log[0]):
        build_table(
            snakemake.wildcards.table,
            snakemake.params.spec,
            snakemake.params.axes,
            snakemake.input.summary,
            snakemake.params.ledgers,
            snakemake.output.tex,
            snakemake.output.csv,
        )
