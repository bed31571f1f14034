"""Find the images of a public set that are also in private sets, and select the public images to keep."""

from this_workflow import job

from dpstudy.dedup.match import deduplicate

if __name__ == "__main__":
    with job(snakemake.log[0]):
        params = snakemake.params
        deduplicate(
            {(snakemake.wildcards.public, split): folder for split, folder in params.public.items()},
            {(dataset, split): folder for dataset, split, folder in params.private},
            dict(snakemake.output.items()),
            drop=params.drop,
            threshold=params.threshold,
        )
