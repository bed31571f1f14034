"""Attack one cell's method with its settings: a lower bound on epsilon."""

import os

from this_workflow import job

from dpstudy.cell.inputs import CellInputs, CellRequest
from dpstudy.jobs.audits import audit_cell

if __name__ == "__main__":
    with job(snakemake.log[0]):
        wildcards, params, files = snakemake.wildcards, snakemake.params, snakemake.input
        request = CellRequest.of(wildcards, params, files.code, seeds=[0], metrics=[], not_accounted=[])
        inputs = CellInputs(
            train=tuple(os.path.dirname(path) for path in files.train),
            held_out="",
            scaling=params.scaling,
            trials=next(iter(files.get("tuning", [])), None),
        )
        audit_cell(request, inputs, params.audit, snakemake.output[0])
