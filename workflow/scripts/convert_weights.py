"""Convert pre-trained weights of a Python package to safetensors."""

from this_workflow import job

from dpstudy.features.packaged import convert

if __name__ == "__main__":
    with job(snakemake.log[0]):
        convert(snakemake.wildcards.package, snakemake.output.model, snakemake.output.card)
