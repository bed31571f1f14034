"""Build the study's page."""

from dpstudy.files import read_json
from dpstudy.job import job
from dpstudy.study.provenance import library_hash, versions
from dpstudy.tables.report import build_report
from dpstudy.tables.results import Results

if __name__ == "__main__":
    with job(snakemake.log[0]):
        params, files = snakemake.params, snakemake.input
        documents = (params.ledgers, params.metrics, params.trials, params.curves, params.audits, params.black_boxes)
        build_report(
            params.study,
            Results.read(params.axes, files.summary, *documents),
            params.tables,
            params.figures,
            {name: f"results/figures/{name}.png" for name in params.figures},
            snakemake.output[0],
            totals=read_json(files.totals)["datasets"],
            dedup=params.dedup,
            made_by={
                "config": params.config_hash,
                "library": library_hash(files.code),
                "versions": versions(),
            },
            question=params.question,
            public_tests=params.public_tests,
            certificates={name: one for path in files.certificates for name, one in read_json(path)["cells"].items()},
        )
