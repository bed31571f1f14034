"""Attack one cell's method with its settings: a lower bound on epsilon."""

import os

from dpstudy.job import job
from dpstudy.study.audits import audit_cell
from dpstudy.study.cells import Cell
from dpstudy.study.inputs import CellInputs, CellRequest

if __name__ == "__main__":
    with job(snakemake.log[0]):
        wildcards, params, files = snakemake.wildcards, snakemake.params, snakemake.input
        request = CellRequest(
            cell=Cell(wildcards.dataset, wildcards.features, wildcards.entry, wildcards.epsilon),
            options=params.options,
            dataset=params.dataset,
            seeds=[0],
            noise=params.noise,
            metrics=[],
            not_accounted=[],
            code=list(files.code),
            library=params.library,
        )
        inputs = CellInputs(
            train=tuple(os.path.dirname(path) for path in files.train),
            held_out="",
            scaling=params.scaling,
            trials=next(iter(files.get("tuning", [])), None),
        )
        audit_cell(request, inputs, params.audit, snakemake.output[0])
