"""Build the study's page."""

from this_workflow import job

from dpstudy.core.files import read_json
from dpstudy.provenance.hashes import library_hash, versions
from dpstudy.report.page import Making, Privacy, build_report
from dpstudy.tables.results import Results

if __name__ == "__main__":
    with job(snakemake.log[0]):
        params, files = snakemake.params, snakemake.input
        build_report(
            params.study,
            Results.read(params.axes, files.summary, **params.documents),
            params.tables,
            params.figures,
            {name: f"results/figures/{name}.png" for name in params.figures},
            snakemake.output[0],
            making=Making(params.config_hash, library_hash(files.code), versions(), params.benchmarks, params.graph),
            privacy=Privacy(
                read_json(files.totals)["datasets"],
                params.dedup,
                params.public_tests,
                {name: one for path in files.certificates for name, one in read_json(path)["cells"].items()},
            ),
            question=params.question,
            claims=[read_json(path) for path in files.claims],
        )
