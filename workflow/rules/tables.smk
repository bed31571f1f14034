# LaTeX tables and figures, with the numbers behind them as CSV.


rule build_table:
    input:
        summary="results/summary.parquet",
        ledgers=targets.cell_files(STUDY, paths.LEDGER),
        metrics=targets.cell_files(STUDY, paths.METRICS),
        trials=lambda wildcards: list(searches_of([STUDY["tables"][wildcards.table]]).values()),
        curves=lambda wildcards: list(curves_of([STUDY["tables"][wildcards.table]]).values()),
        audits=lambda wildcards: list(audits_of([STUDY["tables"][wildcards.table]]).values()),
        black_boxes=lambda wildcards: list(black_boxes_of([STUDY["tables"][wildcards.table]]).values()),
        splits=lambda wildcards: manifests_of([STUDY["tables"][wildcards.table]]),
        published=code.published_files(),
        code=code.script_code("build_table"),
    output:
        tex=report("results/tables/{table}.tex", caption="../report/table.rst", category="Tables"),
        csv="results/tables/{table}.csv",
    log:
        paths.log("build_table", "{table}"),
    benchmark:
        paths.benchmark("build_table", "{table}")
    conda:
        ENVIRONMENT
    resources:
        mem_mb=peak(resources.table),
        runtime=grown(30),
    params:
        library=code.script_hash("build_table"),
        spec=lambda wildcards: STUDY["tables"][wildcards.table],
        axes=targets.axes(STUDY),
        ledgers=cell_paths("ledger.json"),
        metrics=cell_paths("metrics.json"),
        trials=lambda wildcards: searches_of([STUDY["tables"][wildcards.table]]),
        curves=lambda wildcards: curves_of([STUDY["tables"][wildcards.table]]),
        audits=lambda wildcards: audits_of([STUDY["tables"][wildcards.table]]),
        black_boxes=lambda wildcards: black_boxes_of([STUDY["tables"][wildcards.table]]),
        splits=lambda wildcards: splits_in([STUDY["tables"][wildcards.table]]),
    script:
        "../scripts/build_table.py"


rule draw_figure:
    input:
        summary="results/summary.parquet",
        curves=lambda wildcards: curve_files(wildcards.figure),
        trials=lambda wildcards: list(searches_of([STUDY["figures"][wildcards.figure]]).values()),
        ledgers=lambda wildcards: list(sized_ledgers(wildcards.figure).values()),
        metrics=lambda wildcards: list(grouped_metrics(wildcards.figure).values()),
        features=lambda wildcards: neighbour_files(wildcards.figure),
        published=code.published_files()[0],
        code=code.script_code("draw_figure"),
    output:
        pdf="results/figures/{figure}.pdf",
        png=report("results/figures/{figure}.png", caption="../report/figure.rst", category="Figures"),
        csv="results/figures/{figure}.csv",
    log:
        paths.log("draw_figure", "{figure}"),
    benchmark:
        paths.benchmark("draw_figure", "{figure}")
    conda:
        ENVIRONMENT
    resources:
        mem_mb=peak(resources.by_size(255, 6)),
        runtime=grown(30),
    params:
        library=code.script_hash("draw_figure"),
        spec=lambda wildcards: STUDY["figures"][wildcards.figure],
        axes=targets.axes(STUDY),
        trials=lambda wildcards: searches_of([STUDY["figures"][wildcards.figure]]),
        ledgers=lambda wildcards: sized_ledgers(wildcards.figure),
        metrics=lambda wildcards: grouped_metrics(wildcards.figure),
    script:
        "../scripts/draw_figure.py"
