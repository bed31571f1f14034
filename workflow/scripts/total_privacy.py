"""Add up what publishing every seed and cell of each private data set would spend."""

from pathlib import Path

from this_workflow import job

from dpstudy.cell.bound import Binding, PaidHashes, check_cells
from dpstudy.config.locations import records_of
from dpstudy.jobs.totals import write_totals
from dpstudy.privacy.spending import BOOK, Spending

if __name__ == "__main__":
    with job(snakemake.log[0]):
        files = snakemake.input
        cells = [
            {"dataset": dataset, "ledger": ledger, "run": run}
            for dataset, ledger, run in zip(snakemake.params.datasets, files.ledgers, files.runs, strict=True)
        ]
        names = [Path(path).parent.relative_to("results/cells").as_posix() for path in files.ledgers]
        check_cells(names, Binding(PaidHashes(Spending(BOOK))), metrics=False)
        records = {name: records_of(snakemake.config, name) for name in snakemake.params.deltas}
        write_totals(cells, snakemake.params.deltas, snakemake.output[0], BOOK, records)
