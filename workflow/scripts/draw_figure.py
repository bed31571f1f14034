"""Draw accuracy against epsilon, or along training, or noise against a budget: PDF, PNG and the numbers as CSV."""

from dpstudy.job import job
from dpstudy.tables.curves import build_curves
from dpstudy.tables.figures import build_figure
from dpstudy.tables.noise_figure import build_noise_figure

if __name__ == "__main__":
    with job(snakemake.log[0]):
        name, spec, outputs = snakemake.wildcards.figure, snakemake.params.spec, snakemake.output
        files = (outputs.pdf, outputs.png, outputs.csv)
        if spec["style"] == "curve":
            build_curves(name, spec, list(snakemake.input.curves), *files)
        elif spec["style"] == "noise":
            build_noise_figure(name, spec, *files)
        else:
            build_figure(name, spec, snakemake.params.axes, snakemake.input.summary, *files)
