"""Certify every cell of a data set anew: its ledger against other accountants, and against what its seeds drew."""

from this_workflow import job

from dpstudy.privacy.spending import BOOK, Spending
from dpstudy.study.bound import Binding, PaidHashes, check_cells
from dpstudy.study.certificates import write_certificates

if __name__ == "__main__":
    with job(snakemake.log[0]):
        files = snakemake.input
        cells = [
            {"name": name, "ledger": ledger, "run": run, "unnamed": snakemake.params.unnamed}
            for name, ledger, run in zip(snakemake.params.cells, files.ledgers, files.runs, strict=True)
        ]
        check_cells(snakemake.params.cells, Binding(PaidHashes(Spending(BOOK))), metrics=False)
        write_certificates(cells, snakemake.output[0])
