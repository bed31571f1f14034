"""Search for one cell's hyper-parameters on the validation split."""

from this_workflow import job

from dpstudy.cell.inputs import CellInputs, CellRequest
from dpstudy.tuning.search import tune

if __name__ == "__main__":
    with job(snakemake.log[0], gpus=snakemake.resources.get("gpu", 0)):
        params = snakemake.params
        request, inputs = CellRequest.of(params.request, snakemake.input.code), CellInputs.of(params.inputs)
        tune(request, inputs, snakemake.output.trials)
