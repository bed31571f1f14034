# One page that shows the study to a person.


rule judge_claims:
    input:
        summary=lambda wildcards: ["results/summary.parquet"] if claims_table(wildcards.paper) else [],
        documents=lambda wildcards: document_files("tables", claims_table(wildcards.paper)),
        published=published_files(),
        code=code("judge_claims.py", *metric_code()),
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
        library=library("judge_claims.py", *metric_code()),
        table=lambda wildcards: "".join(claims_table(wildcards.paper)),
        spec=lambda wildcards: next((STUDY["tables"][name] for name in claims_table(wildcards.paper)), None),
        axes=lambda wildcards: axes() if claims_table(wildcards.paper) else {},
        documents=lambda wildcards: documents("tables", claims_table(wildcards.paper)),
    script:
        "../scripts/judge_claims.py"


rule build_report:
    input:
        summary="results/summary.parquet",
        ledgers=cell_files("ledger.json"),
        metrics=cell_files("metrics.json"),
        documents=document_files("tables", STUDY["tables"]),
        totals="results/privacy/total.json",
        certificates=certificates(),
        audits=list(audits().values()),
        claims=[f"results/claims/{paper}.json" for paper in STUDY["report"]["claims"]],
        figures=[f"results/figures/{name}.png" for name in STUDY["figures"]],
        published=published_files(),
        templates=report_templates(),
        code=code(
            "build_report.py", *style_modules("tables", STUDY["tables"]), *style_modules("figures", STUDY["figures"])
        ),
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
        library=library(
            "build_report.py", *style_modules("tables", STUDY["tables"]), *style_modules("figures", STUDY["figures"])
        ),
        study=lambda wildcards: STUDY["study"],
        config_hash=config_hash(STUDY),
        question=lambda wildcards: STUDY.get("question", ""),
        axes=lambda wildcards: axes(),
        tables=lambda wildcards: STUDY["tables"],
        figures=lambda wildcards: STUDY["figures"],
        documents=documents("tables", STUDY["tables"])
        | {"ledgers": cell_paths("ledger.json"), "metrics": cell_paths("metrics.json"), "audits": audits()},
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
