"""Build the HTML page of the study's results."""

import time

from this_workflow import job

from dpstudy.core.files import read_json
from dpstudy.data.shards import unreadable_in
from dpstudy.provenance.commit import commit
from dpstudy.provenance.hashes import library_hash, versions
from dpstudy.report.page import Making, Privacy, build_report
from dpstudy.tables.results import Results

if __name__ == "__main__":
    with job(snakemake.log[0]):
        told, files = snakemake.params.report, snakemake.input
        now, code = time.strftime("%Y-%m-%d %H:%M"), library_hash(files.code)
        build_report(
            told["study"],
            Results.open(told["axes"], files.summary, snakemake.params.documents, files),
            told["tables"],
            told["figures"],
            dict(zip(told["figures"], files.figures, strict=True)),
            snakemake.output[0],
            making=Making(told["config_hash"], code, versions(), told["benchmarks"], told["graph"], now, commit()),
            privacy=Privacy(
                read_json(files.totals)["datasets"],
                told["dedup"],
                dict(zip(told["dedup"], map(read_json, files.duplicates), strict=False)),  # of a page for all, none
                told["public_tests"],
                {name: one for path in files.certificates for name, one in read_json(path)["cells"].items()},
                unreadable_in(list(map(read_json, files.manifests))),
            ),
            cells=snakemake.params.cells,
            question=told["question"],
            useful=told["useful"],
            claims=[read_json(path) for path in files.claims],
        )
