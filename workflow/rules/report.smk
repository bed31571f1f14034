# One page that shows the study to a person.


rule judge_claims:
    input:
        unpack(ask(documents.files_of_claims, "paper")),
        summary=ask(documents.summary_of_claims, "paper"),
        published=code.published_files(),
        code=ask(documents.claims_code, "paper"),
    output:
        paths.CLAIMS,
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
        library=hash_of(documents.claims_code, "paper"),
        table=ask(documents.claims_table, "paper"),
        spec=ask(documents.spec_of_claims, "paper"),
        axes=ask(documents.axes_of_claims, "paper"),
        documents=ask(documents.names_of_claims, "paper"),
    script:
        "../scripts/judge_claims.py"


rule build_report:
    input:
        unpack(ask(documents.files_of_report)),
        summary=paths.SUMMARY,
        totals=paths.TOTAL,
        certificates=targets.certificates(STUDY),
        claims=targets.claims(STUDY),
        duplicates=targets.counts_of_duplicates(STUDY),
        manifests=targets.manifests_with_holes(STUDY),
        figures=targets.figures(STUDY, paths.FIGURE_SVG),
        published=code.published_files(),
        templates=code.report_templates(),
        code=documents.report_code(STUDY),
    output:
        report(paths.REPORT, caption="../report/report.rst", category="Report"),
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
        library=library_hash(documents.report_code(STUDY)),
        report=ask(targets.report),
        cells=ask(documents.cells_of_figures),
        documents=ask(documents.names_of_report),
    script:
        "../scripts/build_report.py"
