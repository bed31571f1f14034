"""Merge the matches of a public set's shards, and select the public images to keep."""

from this_workflow import job

from dpstudy.dedup.jobs import merge

if __name__ == "__main__":
    with job(snakemake.log[0]):
        params, inputs = snakemake.params, snakemake.input
        merge(
            inputs.parts,
            {(snakemake.wildcards.public, split): folder for split, folder in params.public.items()},
            {(dataset, split): folder for dataset, split, folder in params.private},
            dict(snakemake.output.items()),
            drop=params.drop,
            rule=params.rule,
            calibrations=inputs.calibrations,
            drawn=params.drawn,
        )
