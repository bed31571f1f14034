"""Certify all cells of a data set again: ledgers by other accountants and drawn samples, training by a replay."""

import os

from this_workflow import job

from dpstudy.cell.bound import check_cells, own_binding
from dpstudy.jobs.certificates import proved_entries, write_certificates
from dpstudy.jobs.replays import replayed

if __name__ == "__main__":
    os.environ["DPSTUDY_GPU"] = "0"  # a few records: no GPU was asked for
    with job(snakemake.log[0]):
        files, params = snakemake.input, snakemake.params
        whose = zip(params.cells, files.ledgers, files.runs, strict=True)
        cells = [cell | {"ledger": ledger, "run": run} for cell, ledger, run in whose]
        check_cells([cell["name"] for cell in cells], own_binding(), metrics=False)
        proved = proved_entries(cells)
        entries = [entry for entry in params.replays if entry["name"] in proved]
        found = replayed(entries, params.noise, snakemake.output.replays)
        write_certificates(cells, snakemake.output.certificate, found)
