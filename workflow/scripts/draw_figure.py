"""Draw a figure in the style that its spec names: PDF, PNG and the numbers as CSV."""

from pathlib import Path

from this_workflow import job

from dpstudy.tables.curves import build_curves
from dpstudy.tables.disparity_figure import build_disparity_figure
from dpstudy.tables.figures import build_figure
from dpstudy.tables.neighbours import build_neighbours
from dpstudy.tables.noise_figure import build_noise_figure
from dpstudy.tables.search_views import build_search_views
from dpstudy.tables.settings_figure import build_settings_figure
from dpstudy.tables.sizes import build_sizes

if __name__ == "__main__":
    with job(snakemake.log[0]):
        name, spec, outputs = snakemake.wildcards.figure, snakemake.params.spec, snakemake.output
        files = (outputs.pdf, outputs.png, outputs.csv)
        if spec["style"] == "curve":
            build_curves(name, spec, snakemake.params.axes, list(snakemake.input.curves), *files)
        elif spec["style"] == "noise":
            build_noise_figure(name, spec, *files)
        elif spec["style"] == "search":
            build_search_views(name, spec, snakemake.params.axes, snakemake.params.trials, *files)
        elif spec["style"] == "size":
            build_sizes(name, spec, snakemake.params.axes, snakemake.input.summary, snakemake.params.ledgers, *files)
        elif spec["style"] == "neighbours":
            build_neighbours(name, spec, Path(snakemake.input.features[0]).parent, *files)
        elif spec["style"] == "disparity":
            build_disparity_figure(name, spec, snakemake.params.axes, snakemake.params.metrics, *files)
        elif spec["style"] == "settings":
            build_settings_figure(name, spec, snakemake.params.metrics, *files)
        else:
            build_figure(name, spec, snakemake.params.axes, snakemake.input.summary, *files)
