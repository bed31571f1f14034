"""Gather the metrics of the study's cells; refuse those of another config or, if not yet paid for, library."""

from this_workflow import job

from dpstudy.cell.bound import Binding, PaidHashes, check_cells
from dpstudy.cell.paid_models import PaidModels
from dpstudy.evaluation.summary import write_summary
from dpstudy.privacy.spending import BOOK, Spending

if __name__ == "__main__":
    with job(snakemake.log[0]):
        files = snakemake.input.metrics
        cells = [cell | {"metrics": path} for cell, path in zip(snakemake.params.cells, files, strict=True)]
        book = Spending(BOOK)
        check_cells([cell["name"] for cell in cells], Binding(PaidHashes(book)))
        write_summary(cells, snakemake.output.csv, snakemake.output.parquet, PaidModels(book).vouches)
