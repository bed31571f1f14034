"""Attack one cell's method by the losses of models trained with and without one record (de2022 A.2)."""

from this_workflow import job

from dpstudy.cell.inputs import CellInputs, CellRequest
from dpstudy.jobs.black_box import audit_black_box

if __name__ == "__main__":
    with job(snakemake.log[0], gpus=snakemake.resources.get("gpu", 0)):
        params = snakemake.params
        request, inputs = CellRequest.of(params.request, snakemake.input.code), CellInputs.of(params.inputs)
        audit_black_box(request, inputs, params.black_box, snakemake.output[0])
