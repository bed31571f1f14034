# One page that shows the study to a person.


rule judge_claims:
    input:
        summary=lambda wildcards: ["results/summary.parquet"] if claims_table(wildcards.paper)[0] else [],
        documents=lambda wildcards: [
            path for paths in claims_documents(wildcards.paper).values() for path in paths.values()
        ],
        published=published_files(),
        code=code("judge_claims.py"),
    output:
        "results/claims/{paper}.json",
    log:
        "results/logs/judge_claims/{paper}.log",
    benchmark:
        "results/benchmarks/judge_claims/{paper}.tsv"
    conda:
        "../../envs/study.yaml"
    threads: 1
    resources:
        mem_mb=peak(lambda wildcards, input: int(CLAIMS_MB[wildcards.paper] + 8 * input.size_mb)),
        runtime=grown(30),
    params:
        library=library("judge_claims.py"),
        table=lambda wildcards: claims_table(wildcards.paper)[0],
        spec=lambda wildcards: claims_table(wildcards.paper)[1],
        axes=lambda wildcards: axes() if claims_table(wildcards.paper)[0] else {},
        documents=lambda wildcards: claims_documents(wildcards.paper),
    script:
        "../scripts/judge_claims.py"


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
        splits=manifests_of(STUDY["tables"].values()),
        claims=[f"results/claims/{paper}.json" for paper in STUDY["report"]["claims"]],
        figures=[f"results/figures/{name}.png" for name in STUDY["figures"]],
        published=published_files(),
        templates=report_templates(),
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
        mem_mb=peak(memory(175, 8)),
        runtime=grown(30),
    params:
        library=library("build_report.py"),
        study=lambda wildcards: STUDY["study"],
        config_hash=config_hash(STUDY),
        question=lambda wildcards: STUDY.get("question", ""),
        axes=lambda wildcards: axes(),
        tables=lambda wildcards: STUDY["tables"],
        figures=lambda wildcards: STUDY["figures"],
        ledgers=cell_paths("ledger.json"),
        metrics=cell_paths("metrics.json"),
        trials=searches_of(STUDY["tables"].values()),
        curves=curves_of(STUDY["tables"].values()),
        audits=audits(),
        black_boxes=black_boxes_of(STUDY["tables"].values()),
        splits=splits_in(STUDY["tables"].values()),
        public_tests={name: test_is_public(dataset) for name, dataset in STUDY["datasets"].items()},
        dedup={
            public: {key: STUDY["dedup"][key] for key in ("drop", "method")} | {"rule": rule_options()}
            for public in sorted({made["public"] for made in (*STUDY["backbones"].values(), *STUDY["fits"].values())})
            if is_matched(public)
        },
        benchmarks=shown_benchmarks(),
        graph=GRAPH,
    script:
        "../scripts/build_report.py"
