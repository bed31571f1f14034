"""Judge every claim of a paper by the study's results."""

from this_workflow import job

from dpstudy.core.files import write_json
from dpstudy.report.claims import NOTHING, judge_paper
from dpstudy.tables.results import Results

if __name__ == "__main__":
    with job(snakemake.log[0]):
        params, results = snakemake.params, NOTHING
        if params.table:
            results = Results.open(params.axes, snakemake.input.summary[0], params.documents, snakemake.input)
        write_json(snakemake.output[0], judge_paper(snakemake.wildcards.paper, params.table, params.spec, results))
