"""Attack one cell's method by the losses of models that were trained with and without one record (de2022 A.2)."""

import os

from this_workflow import job

from dpstudy.cell.inputs import CellInputs, CellRequest
from dpstudy.jobs.black_box import audit_black_box

if __name__ == "__main__":
    with job(snakemake.log[0], gpus=snakemake.resources.get("gpu", 0)):
        wildcards, params, files = snakemake.wildcards, snakemake.params, snakemake.input
        request = CellRequest.of(wildcards, params, files.code, seeds=[0], metrics=[], not_accounted=[])
        inputs = CellInputs(
            train=(os.path.dirname(files.train[0]),),
            held_out=os.path.dirname(files.test[0]),
            scaling=params.scaling,
            start=next(iter(files.get("start", [])), None),
        )
        audit_black_box(request, inputs, params.black_box, snakemake.output[0])
