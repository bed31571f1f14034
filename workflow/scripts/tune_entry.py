"""Search for one cell's hyper-parameters on the validation split."""

import os

from this_workflow import job

from dpstudy.cell.inputs import CellInputs, CellRequest
from dpstudy.tuning.search import tune

if __name__ == "__main__":
    with job(snakemake.log[0], gpus=snakemake.resources.get("gpu", 0)):
        wildcards, params, files = snakemake.wildcards, snakemake.params, snakemake.input
        request = CellRequest.of(wildcards, params, files.code, seeds=[0], metrics=params.metrics, not_accounted=[])
        inputs = CellInputs(
            train=tuple(os.path.dirname(path) for path in files.train if path.endswith("/manifest.json")),
            held_out=os.path.dirname(files.validation[0]),
            kept=tuple(files.get("kept", [])),
            statistics=tuple(path for path in files.train if path.startswith("results/private/statistics/")),
            scaling=params.scaling,
            start=next(iter(files.get("start", [])), None),
            public=next(iter(files.get("public", [])), None),
        )
        tune(request, inputs, snakemake.output.trials)
