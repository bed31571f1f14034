# LaTeX tables and figures, with the numbers behind them as CSV.


rule build_table:
    input:
        summary="results/summary.parquet",
        documents=lambda wildcards: document_files("tables", [wildcards.table]),
        published=published_files(),
        code=lambda wildcards: code("build_table.py", *style_modules("tables", [wildcards.table])),
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
        library=lambda wildcards: library("build_table.py", *style_modules("tables", [wildcards.table])),
        spec=lambda wildcards: STUDY["tables"][wildcards.table],
        axes=axes(),
        documents=lambda wildcards: documents("tables", [wildcards.table]),
    script:
        "../scripts/build_table.py"


rule draw_figure:
    input:
        summary="results/summary.parquet",
        documents=lambda wildcards: document_files("figures", [wildcards.figure]),
        published=relative(WORKFLOW / "published" / "results.csv"),
        code=lambda wildcards: code("draw_figure.py", *style_modules("figures", [wildcards.figure])),
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
        library=lambda wildcards: library("draw_figure.py", *style_modules("figures", [wildcards.figure])),
        spec=lambda wildcards: STUDY["figures"][wildcards.figure],
        axes=axes(),
        documents=lambda wildcards: documents("figures", [wildcards.figure]),
    script:
        "../scripts/draw_figure.py"
