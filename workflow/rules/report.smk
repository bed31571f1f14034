# One page that shows the study to a person.


rule judge_claims:
    input:
        summary=lambda wildcards: ["results/summary.parquet"] if claims_table(wildcards.paper)[0] else [],
        documents=lambda wildcards: [
            path for paths in claims_documents(wildcards.paper).values() for path in paths.values()
        ],
        published=code.published_files(),
        code=code.script_code("judge_claims"),
    output:
        "results/claims/{paper}.json",
    log:
        paths.log("judge_claims", "{paper}"),
    benchmark:
        paths.benchmark("judge_claims", "{paper}")
    conda:
        ENVIRONMENT
    resources:
        mem_mb=peak(resources.claims),
        runtime=grown(30),
    params:
        library=code.script_hash("judge_claims"),
        table=lambda wildcards: claims_table(wildcards.paper)[0],
        spec=lambda wildcards: claims_table(wildcards.paper)[1],
        axes=lambda wildcards: targets.axes(STUDY) if claims_table(wildcards.paper)[0] else {},
        documents=lambda wildcards: claims_documents(wildcards.paper),
    script:
        "../scripts/judge_claims.py"


rule build_report:
    input:
        summary="results/summary.parquet",
        ledgers=targets.cell_files(STUDY, paths.LEDGER),
        metrics=targets.cell_files(STUDY, paths.METRICS),
        trials=list(searches_of(STUDY["tables"].values()).values()),
        curves=list(curves_of(STUDY["tables"].values()).values()),
        totals="results/privacy/total.json",
        certificates=targets.certificates(STUDY),
        audits=list(audits().values()),
        black_boxes=list(black_boxes_of(STUDY["tables"].values()).values()),
        splits=manifests_of(STUDY["tables"].values()),
        claims=[f"results/claims/{paper}.json" for paper in STUDY["report"]["claims"]],
        figures=[f"results/figures/{name}.png" for name in STUDY["figures"]],
        published=code.published_files(),
        templates=code.report_templates(),
        code=code.script_code("build_report"),
    output:
        report("results/report/index.html", caption="../report/report.rst", category="Report"),
    log:
        paths.log("build_report", "report"),
    benchmark:
        paths.benchmark("build_report", "report")
    conda:
        ENVIRONMENT
    resources:
        mem_mb=peak(resources.by_size(175, 8)),
        runtime=grown(30),
    params:
        library=code.script_hash("build_report"),
        study=lambda wildcards: STUDY["study"],
        config_hash=config_hash(STUDY),
        question=lambda wildcards: STUDY.get("question", ""),
        axes=lambda wildcards: targets.axes(STUDY),
        tables=lambda wildcards: STUDY["tables"],
        figures=lambda wildcards: STUDY["figures"],
        ledgers=cell_paths("ledger.json"),
        metrics=cell_paths("metrics.json"),
        trials=searches_of(STUDY["tables"].values()),
        curves=curves_of(STUDY["tables"].values()),
        audits=audits(),
        black_boxes=black_boxes_of(STUDY["tables"].values()),
        splits=splits_in(STUDY["tables"].values()),
        public_tests=targets.public_tests(STUDY),
        dedup=targets.deduplicated(STUDY),
        benchmarks=targets.shown_benchmarks(STUDY),
        graph=paths.GRAPH,
    script:
        "../scripts/build_report.py"
