"""Fit the basis in which de-duplication compares images, on a public set."""

from this_workflow import job

from dpstudy.dedup.basis import fit_basis

if __name__ == "__main__":
    with job(snakemake.log[0]):
        fit_basis(snakemake.input.descriptions, snakemake.output.basis)
