"""Fit a projection of features on a public data set."""

from this_workflow import job

from dpstudy.features.fits import fit_projection

if __name__ == "__main__":
    with job(snakemake.log[0], gpus=snakemake.resources.get("gpu", 0)):
        params = snakemake.params
        fit_projection(
            snakemake.wildcards.fit,
            params.options,
            params.folder,
            dict(snakemake.output.items()),
            kept=next(iter(snakemake.input.get("kept", [])), None),
            drop=params.drop,
            backbone_folder=params.backbone,
            data_root=params.where.data_root,
        )
