"""The study as Snakemake's rules see it: paths, inputs, parameters, resources and checks before a run."""
