"""Merge the matches of a public set's shards, and select the public images to keep."""

from this_workflow import job

from dpstudy.dedup.jobs import merge

if __name__ == "__main__":
    with job(snakemake.log[0]):
        params, inputs, outputs = snakemake.params, snakemake.input, snakemake.output
        merge(
            inputs.parts,
            {(snakemake.wildcards.public, split): folder for split, folder in params.public.items()},
            {(dataset, split): folder for dataset, split, folder in params.private},
            matches_path=outputs.matches,
            kept_path=outputs.kept,
            report_path=outputs.report,
            picture_path=outputs.picture,
            drop=params.drop,
            rule=params.rule,
            calibrations=inputs.calibrations,
            drawn=params.drawn,
        )
