"""Write the LaTeX document that holds every table and figure of the study."""

from this_workflow import job

from dpstudy.tables.paper import write_paper

if __name__ == "__main__":
    with job(snakemake.log[0]):
        params = snakemake.params
        write_paper(
            params.study,
            params.question,
            params.axes,
            params.tables,
            params.figures,
            snakemake.output[0],
            private_tests=params.private_tests,
        )
