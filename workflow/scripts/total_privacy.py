"""Compute the total privacy cost of publishing every seed and cell, for each private data set."""

from this_workflow import job

from dpstudy.cell.bound import Binding, PaidHashes, check_cells
from dpstudy.jobs.totals import write_totals
from dpstudy.privacy.spending import BOOK, Spending

if __name__ == "__main__":
    with job(snakemake.log[0]):
        files, params = snakemake.input, snakemake.params
        whose = zip(params.cells, files.ledgers, files.runs, strict=True)
        cells = [cell | {"ledger": ledger, "run": run} for cell, ledger, run in whose]
        book = Spending(BOOK, shared=params.records.books, others=params.records.others)
        check_cells([cell["name"] for cell in cells], Binding(PaidHashes(book)), metrics=False)
        write_totals(cells, params.deltas, snakemake.output[0], book, params.records.of)
