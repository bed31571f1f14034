# One page that shows the study to a person.


rule build_report:
    input:
        summary="results/summary.parquet",
        ledgers=cell_files("ledger.json"),
        metrics=cell_files("metrics.json"),
        trials=list(searches_of(STUDY["tables"].values()).values()),
        curves=list(curves_of(STUDY["tables"].values()).values()),
        totals="results/privacy/total.json",
        certificates=certificates(),
        audits=list(audits().values()),
        black_boxes=list(black_boxes_of(STUDY["tables"].values()).values()),
        figures=[f"results/figures/{name}.png" for name in STUDY["figures"]],
        published=published_files(),
        templates=report_template(),
        code=code("build_report.py"),
    output:
        report("results/report/index.html", caption="../report/report.rst", category="Report"),
    log:
        "results/logs/build_report/report.log",
    benchmark:
        "results/benchmarks/build_report/report.tsv"
    conda:
        "../../envs/study.yaml"
    threads: 1
    resources:
        mem_mb=peak(memory(138, 8)),
        runtime=grown(30),
    params:
        study=STUDY["study"],
        config_hash=config_hash(STUDY),
        question=STUDY.get("question", ""),
        axes=axes(),
        tables=STUDY["tables"],
        figures=STUDY["figures"],
        ledgers=cell_paths("ledger.json"),
        metrics=cell_paths("metrics.json"),
        trials=searches_of(STUDY["tables"].values()),
        curves=curves_of(STUDY["tables"].values()),
        audits=audits(),
        black_boxes=black_boxes_of(STUDY["tables"].values()),
        public_tests={name: test_is_public(dataset) for name, dataset in STUDY["datasets"].items()},
        dedup={
            public: STUDY["dedup"]["drop"]
            for public in sorted({backbone["public"] for backbone in STUDY["backbones"].values()})
        },
    script:
        "../scripts/build_report.py"
