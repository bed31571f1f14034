# All tables and figures in one PDF (`make paper`); no part of `all`: many machines have no LaTeX.


localrules:
    write_paper,
    compile_paper,


rule write_paper:
    input:
        unpack(ask(documents.files_of_paper)),
        summary=paths.SUMMARY,
        template=code.paper_template(),
        code=documents.paper_code(STUDY),
    output:
        paths.PAPER_TEX,
    log:
        paths.log("write_paper", "all"),
    benchmark:
        paths.benchmark("write_paper", "all")
    conda:
        ENVIRONMENT
    resources:
        mem_mb=peak(resources.by_size(200, 8)),
        runtime=grown(10),
    params:
        library=library_hash(documents.paper_code(STUDY)),
        paper=ask(targets.paper),
        cells=ask(documents.cells_of_figures),
        documents=ask(documents.names_of_paper),
    script:
        "../scripts/write_paper.py"


rule compile_paper:
    input:
        tex=paths.PAPER_TEX,
        tables=targets.tables(STUDY, paths.TABLE_TEX),
        figures=targets.figures(STUDY, paths.FIGURE_PDF),
        code=code.script_code("compile_paper"),
    output:
        paths.PAPER_PDF,
    log:
        paths.log("compile_paper", "all"),
    benchmark:
        paths.benchmark("compile_paper", "all")
    conda:
        ENVIRONMENT
    resources:
        mem_mb=peak(300),
        runtime=grown(10),
    params:
        library=code.script_hash("compile_paper"),
    script:
        "../scripts/compile_paper.py"
