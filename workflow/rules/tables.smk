# LaTeX tables and figures, with the numbers behind them as CSV.


def axes():
    """The study's names, in its order."""
    return {
        "datasets": list(STUDY["datasets"]),
        "features": list(STUDY["features"]),
        "entries": list(STUDY["methods"]),
        "epsilons": STUDY["epsilons"],
    }


def ledger_paths():
    """Cell -> its ledger."""
    return {cell.path: f"results/cells/{cell.path}/ledger.json" for cell in CELLS}


rule build_table:
    input:
        summary="results/summary.parquet",
        ledgers=cell_files("ledger.json"),
        published="workflow/published/results.csv",
        code=code("build_table.py"),
    output:
        tex=report("results/tables/{table}.tex", caption="../report/table.rst", category="Tables"),
        csv="results/tables/{table}.csv",
    params:
        spec=lambda wildcards: STUDY["tables"][wildcards.table],
        axes=axes(),
        ledgers=ledger_paths(),
    log:
        "results/logs/build_table/{table}.log",
    benchmark:
        "results/benchmarks/build_table/{table}.tsv"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=30,
    conda:
        "../../envs/study.yaml"
    script:
        "../scripts/build_table.py"


rule draw_figure:
    input:
        summary="results/summary.parquet",
        published="workflow/published/results.csv",
        code=code("draw_figure.py"),
    output:
        pdf="results/figures/{figure}.pdf",
        png=report("results/figures/{figure}.png", caption="../report/figure.rst", category="Figures"),
        csv="results/figures/{figure}.csv",
    params:
        spec=lambda wildcards: STUDY["figures"][wildcards.figure],
        axes=axes(),
    log:
        "results/logs/draw_figure/{figure}.log",
    benchmark:
        "results/benchmarks/draw_figure/{figure}.tsv"
    threads: 1
    resources:
        mem_mb=1500,
        runtime=30,
    conda:
        "../../envs/study.yaml"
    script:
        "../scripts/draw_figure.py"
