"""Write the LaTeX document that holds every table and figure of the study."""

from this_workflow import job

from dpstudy.tables.paper import write_paper

if __name__ == "__main__":
    with job(snakemake.log[0]):
        paper = snakemake.params.paper
        write_paper(
            paper["study"],
            paper["question"],
            paper["axes"],
            paper["tables"],
            paper["figures"],
            snakemake.output[0],
            private_tests=paper["private_tests"],
        )
