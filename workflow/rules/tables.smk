# LaTeX tables and figures, with the numbers behind them as CSV.


rule build_table:
    input:
        summary="results/summary.parquet",
        ledgers=cell_files("ledger.json"),
        metrics=cell_files("metrics.json"),
        trials=lambda wildcards: list(searches_of([STUDY["tables"][wildcards.table]]).values()),
        curves=lambda wildcards: list(curves_of([STUDY["tables"][wildcards.table]]).values()),
        audits=lambda wildcards: list(audits_of([STUDY["tables"][wildcards.table]]).values()),
        black_boxes=lambda wildcards: list(black_boxes_of([STUDY["tables"][wildcards.table]]).values()),
        splits=lambda wildcards: manifests_of([STUDY["tables"][wildcards.table]]),
        published=published_files(),
        code=code("build_table.py"),
    output:
        tex=report("results/tables/{table}.tex", caption="../report/table.rst", category="Tables"),
        csv="results/tables/{table}.csv",
    log:
        "results/logs/build_table/{table}.log",
    benchmark:
        "results/benchmarks/build_table/{table}.tsv"
    conda:
        "../../envs/study.yaml"
    threads: 1
    resources:
        mem_mb=peak(table_memory),
        runtime=grown(30),
    params:
        library=library("build_table.py"),
        spec=lambda wildcards: STUDY["tables"][wildcards.table],
        axes=axes(),
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
        published=relative(WORKFLOW / "published" / "results.csv"),
        code=code("draw_figure.py"),
    output:
        pdf="results/figures/{figure}.pdf",
        png=report("results/figures/{figure}.png", caption="../report/figure.rst", category="Figures"),
        csv="results/figures/{figure}.csv",
    log:
        "results/logs/draw_figure/{figure}.log",
    benchmark:
        "results/benchmarks/draw_figure/{figure}.tsv"
    conda:
        "../../envs/study.yaml"
    threads: 1
    resources:
        mem_mb=peak(memory(255, 6)),
        runtime=grown(30),
    params:
        library=library("draw_figure.py"),
        spec=lambda wildcards: STUDY["figures"][wildcards.figure],
        axes=axes(),
        trials=lambda wildcards: searches_of([STUDY["figures"][wildcards.figure]]),
        ledgers=lambda wildcards: sized_ledgers(wildcards.figure),
        metrics=lambda wildcards: grouped_metrics(wildcards.figure),
    script:
        "../scripts/draw_figure.py"
