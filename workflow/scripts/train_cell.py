"""Train one cell for all its seeds: model, run, scores, ledger and, for stepped methods, curve."""

import os

from this_workflow import job

from dpstudy.cell.inputs import CellInputs, CellRequest
from dpstudy.cell.paid_training import take_or_train
from dpstudy.config.locations import records_of
from dpstudy.jobs.launch import launch
from dpstudy.jobs.training import train_cell
from dpstudy.plan.outside import kept_numbers
from dpstudy.privacy.spending import BOOK, Spending

if __name__ == "__main__":
    # Snakemake grants at most what a machine is said to have; processes that share a job need a GPU each all the same.
    gpus = snakemake.params.options.get("devices", 1) if snakemake.resources.get("gpu", 0) else 0
    with job(snakemake.log[0], gpus=gpus):
        wildcards, params, files = snakemake.wildcards, snakemake.params, snakemake.input
        request = CellRequest.of(
            wildcards,
            params,
            files.code,
            seeds=params.seeds,
            metrics=(),
            origin=params.origin,
            # Not a parameter either: cells that were trained before it was said would be trained again.
            not_accounted=[*params.not_accounted, *kept_numbers(snakemake.config, wildcards.dataset, Spending(BOOK))],
            checkpoint=getattr(params, "checkpoint", None),
            on_training=params.on_training,
            spent=BOOK,
            # Not parameters of the rule: to allow it, or to move the data, would then train every cell again.
            spend_again=snakemake.config.get("release", {}).get("spend_again", False),
            ceiling=snakemake.config.get("release", {}).get("budget"),
            records=records_of(snakemake.config, wildcards.dataset) if params.noise == "secure" else "",
        )
        inputs = CellInputs(
            train=tuple(os.path.dirname(path) for path in files.train if path.endswith("/manifest.json")),
            held_out=os.path.dirname(files.test[0]),
            kept=tuple(files.get("kept", [])),
            statistics=tuple(path for path in files.train if path.startswith("results/private/statistics/")),
            scaling=params.scaling,
            start=next(iter(files.get("start", [])), None),
            public=next(iter(files.get("public", [])), None),
            trials=next(iter(files.get("tuning", [])), None),
            validation=os.path.dirname(files.choosing[0]) if files.get("choosing") else None,
        )
        outputs = dict(snakemake.output.items())

        def train():
            if params.options.get("devices", 1) > 1:
                launch(request, inputs, outputs, snakemake.log[0], snakemake.threads)
            else:
                train_cell(request, inputs, outputs)

        take_or_train(request, inputs, outputs, train)
