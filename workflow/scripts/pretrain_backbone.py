"""Pre-train a network on a public data set."""

from this_workflow import job

from dpstudy.core import torchrun
from dpstudy.pretraining.pretrain import pretrain
from dpstudy.provenance.hashes import library_hash

if __name__ == "__main__":
    # Snakemake grants at most what a machine is said to have; processes that share a job need a GPU each all the same.
    gpus = snakemake.params.options.get("devices", 1) if snakemake.resources.get("gpu", 0) else 0
    with job(snakemake.log[0], gpus=gpus):
        params, output = snakemake.params, snakemake.output
        arguments = {
            "name": snakemake.wildcards.backbone,
            "options": params.options,
            "public_folder": params.folder,
            "out_model": output.model,
            "out_card": output.card,
            "kept": next(iter(snakemake.input.get("kept", [])), None),
            "dedup": params.dedup,
            "checkpoint": params.checkpoint,
            "library": library_hash(list(snakemake.input.code)),
        }
        devices = params.options.get("devices", 1)
        if devices > 1:
            content = {"arguments": arguments, "log": snakemake.log[0]}
            torchrun.run("dpstudy.pretraining.rank", content, devices, snakemake.threads)
        else:
            pretrain(**arguments)
