"""Gather the metrics of the study's cells; refuse one that another config, or another library unpaid, made."""

from this_workflow import job

from dpstudy.cell.bound import Binding, PaidHashes, check_cells
from dpstudy.cell.paid_models import PaidModels
from dpstudy.evaluation.summary import cell_name, write_summary
from dpstudy.privacy.spending import BOOK, Spending

if __name__ == "__main__":
    with job(snakemake.log[0]):
        axes = ("dataset", "features", "entry", "epsilon")
        cells = [
            dict(zip(axes, names, strict=True), metrics=path, expected=snakemake.params.expected[cell_name(*names)])
            for names, path in zip(snakemake.params.cells, snakemake.input.metrics, strict=True)
        ]
        book = Spending(BOOK)
        check_cells([cell_name(*names) for names in snakemake.params.cells], Binding(PaidHashes(book)))
        write_summary(cells, snakemake.output.csv, snakemake.output.parquet, PaidModels(book).vouches)
