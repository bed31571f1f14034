# LaTeX tables and figures, with the numbers behind them as CSV.


rule build_table:
    input:
        unpack(ask(documents.files_of_table, "table")),
        summary=paths.SUMMARY,
        published=code.published_files(),
        code=ask(documents.table_code, "table"),
    output:
        tex=report(paths.TABLE_TEX, caption="../report/table.rst", category="Tables"),
        csv=report(paths.TABLE_CSV, caption="../report/table.rst", category="Tables"),
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
        library=hash_of(documents.table_code, "table"),
        spec=ask(sources.entry_of, "table", of="tables"),
        axes=ask(targets.axes),
        documents=ask(documents.names_of_table, "table"),
    script:
        "../scripts/build_table.py"


rule draw_figure:
    input:
        unpack(ask(documents.files_of_figure, "figure")),
        summary=paths.SUMMARY,
        published=code.published_files()[0],
        code=ask(documents.figure_code, "figure"),
    output:
        pdf=paths.FIGURE_PDF,
        png=report(paths.FIGURE_PNG, caption="../report/figure.rst", category="Figures"),
        csv=paths.FIGURE_CSV,
        svg=paths.FIGURE_SVG,
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
        library=hash_of(documents.figure_code, "figure"),
        spec=ask(sources.entry_of, "figure", of="figures"),
        axes=ask(targets.axes),
        documents=ask(documents.names_of_figure, "figure"),
    script:
        "../scripts/draw_figure.py"
