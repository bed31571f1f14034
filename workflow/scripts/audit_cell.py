"""Compute a lower bound on epsilon by attacking one cell's method with its settings."""

from this_workflow import job

from dpstudy.cell.inputs import CellInputs, CellRequest
from dpstudy.jobs.audits import audit_cell

if __name__ == "__main__":
    with job(snakemake.log[0]):
        params = snakemake.params
        request, inputs = CellRequest.of(params.request, snakemake.input.code), CellInputs.of(params.inputs)
        audit_cell(request, inputs, params.audit, snakemake.output[0])
