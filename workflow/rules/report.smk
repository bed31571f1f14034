# One page that shows the study to a person.


def report_template():
    """The page's templates."""
    return sorted(str(path) for path in Path("workflow/report").glob("*.j2"))


rule build_report:
    input:
        summary="results/summary.parquet",
        ledgers=cell_files("ledger.json"),
        totals="results/privacy/total.json",
        figures=[f"results/figures/{name}.png" for name in STUDY["figures"]],
        published="workflow/published/results.csv",
        templates=report_template(),
        code=code("build_report.py"),
    output:
        report("results/report/index.html", caption="../report/report.rst", category="Report"),
    params:
        study=STUDY["study"],
        config_hash=config_hash(STUDY),
        question=STUDY.get("question", ""),
        axes=axes(),
        tables=STUDY["tables"],
        figures=STUDY["figures"],
        ledgers=ledger_paths(),
        dedup={
            public: STUDY["dedup"]["drop"]
            for public in sorted({backbone["public"] for backbone in STUDY["backbones"].values()})
        },
    log:
        "results/logs/build_report/report.log",
    benchmark:
        "results/benchmarks/build_report/report.tsv"
    threads: 1
    resources:
        mem_mb=1500,
        runtime=30,
    conda:
        "../../envs/study.yaml"
    script:
        "../scripts/build_report.py"
