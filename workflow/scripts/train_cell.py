"""Train one cell for all its seeds: model, run facts, scores, ledger and, for stepped methods, training curve."""

from this_workflow import job

from dpstudy.cell.inputs import CellInputs, CellRequest
from dpstudy.cell.paid_training import take_or_train
from dpstudy.jobs.launch import launch
from dpstudy.jobs.training import train_cell

if __name__ == "__main__":
    params, devices = snakemake.params, snakemake.params.request["options"].get("devices", 1)
    # Snakemake grants at most what a machine is said to have; processes that share a job need a GPU each all the same.
    with job(snakemake.log[0], gpus=devices if snakemake.resources.get("gpu", 0) else 0):
        request = CellRequest.of(params.request, snakemake.input.code, params.spending)
        inputs, outputs = CellInputs.of(params.inputs), dict(snakemake.output.items())

        def train():
            if devices > 1:
                launch(request, inputs, outputs, snakemake.log[0], snakemake.threads)
            else:
                train_cell(request, inputs, outputs)

        take_or_train(request, inputs, outputs, train)
