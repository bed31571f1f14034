"""Train one cell for all its seeds: model, metrics, ledger and, for stepped methods, the curve."""

from dpstudy.job import job
from dpstudy.study.cells import Cell
from dpstudy.study.training import CellInputs, CellRequest, train_cell

if __name__ == "__main__":
    with job(snakemake.log[0]):
        wildcards, params, files = snakemake.wildcards, snakemake.params, snakemake.input
        folder = f"results/features/{wildcards.dataset}/{wildcards.features}"
        statistics = [path for path in files.train if path.startswith("results/private/statistics/")]
        request = CellRequest(
            cell=Cell(wildcards.dataset, wildcards.features, wildcards.entry, wildcards.epsilon),
            options=params.options,
            dataset=params.dataset,
            seeds=params.seeds,
            noise=params.noise,
            metrics=params.metrics,
            not_accounted=params.not_accounted,
            code=list(files.code),
            library=params.library,
        )
        inputs = CellInputs(
            train=f"{folder}/train",
            test=f"{folder}/test",
            kept=next(iter(files.get("kept", [])), None),
            statistics=statistics[0] if statistics else None,
        )
        train_cell(request, inputs, dict(snakemake.output.items()))
