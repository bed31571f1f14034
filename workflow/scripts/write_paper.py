"""Write the LaTeX document that holds every table and figure of the study."""

from this_workflow import job

from dpstudy.tables.paper import write_paper
from dpstudy.tables.results import Results

if __name__ == "__main__":
    with job(snakemake.log[0]):
        told, params = snakemake.params.paper, snakemake.params
        results = Results.open(told["axes"], snakemake.input.summary, params.documents, snakemake.input)
        tables, figures = told["tables"], told["figures"]
        write_paper(told["study"], told["question"], results, tables, figures, params.cells, snakemake.output[0])
