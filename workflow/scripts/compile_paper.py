"""Compile the study's tables and figures into one PDF."""

from this_workflow import job

from dpstudy.tables.pdflatex import compile_pdf

if __name__ == "__main__":
    with job(snakemake.log[0]):
        compile_pdf(snakemake.input.tex, snakemake.output[0])
