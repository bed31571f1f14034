"""Search for one cell's hyper-parameters on the validation split."""

from dpstudy.job import job
from dpstudy.study.cells import Cell
from dpstudy.study.inputs import CellInputs, CellRequest
from dpstudy.tuning.search import tune

if __name__ == "__main__":
    with job(snakemake.log[0]):
        wildcards, params, files = snakemake.wildcards, snakemake.params, snakemake.input
        folder = f"results/features/{wildcards.dataset}/{wildcards.features}"
        request = CellRequest(
            cell=Cell(wildcards.dataset, wildcards.features, wildcards.entry, wildcards.epsilon),
            options=params.options,
            dataset=params.dataset,
            seeds=[0],
            noise=params.noise,
            metrics=params.metrics,
            not_accounted=[],
            code=list(files.code),
            library=params.library,
        )
        inputs = CellInputs(
            train=(f"{folder}/train",),
            held_out=f"{folder}/validation",
            kept=tuple(files.get("kept", [])),
            statistics=tuple(path for path in files.train if path.startswith("results/private/statistics/")),
            start=next(iter(files.get("start", [])), None),
        )
        tune(request, inputs, snakemake.output.trials)
