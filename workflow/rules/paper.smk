# All tables and figures in one PDF (`make paper`); no part of `all`: many machines have no LaTeX.


localrules:
    write_paper,
    compile_paper,


rule write_paper:
    input:
        template=relative(WORKFLOW / "report" / "paper.tex.j2"),
        code=code("write_paper.py", *style_modules("figures", STUDY["figures"])),
    output:
        "results/tables/all.tex",
    log:
        "results/logs/write_paper/all.log",
    benchmark:
        "results/benchmarks/write_paper/all.tsv"
    conda:
        "../../envs/study.yaml"
    threads: 1
    resources:
        mem_mb=peak(200),
        runtime=grown(10),
    params:
        library=library("write_paper.py", *style_modules("figures", STUDY["figures"])),
        study=lambda wildcards: STUDY["study"],
        question=lambda wildcards: STUDY.get("question", ""),
        axes=lambda wildcards: axes(),
        tables=lambda wildcards: list(STUDY["tables"]),
        figures=lambda wildcards: STUDY["figures"],
        private_tests=axes()["private_tests"],
    script:
        "../scripts/write_paper.py"


rule compile_paper:
    input:
        tex="results/tables/all.tex",
        tables=[f"results/tables/{name}.tex" for name in STUDY["tables"]],
        figures=[f"results/figures/{name}.pdf" for name in STUDY["figures"]],
        code=code("compile_paper.py"),
    output:
        "results/tables/all.pdf",
    log:
        "results/logs/compile_paper/all.log",
    benchmark:
        "results/benchmarks/compile_paper/all.tsv"
    conda:
        "../../envs/study.yaml"
    threads: 1
    resources:
        mem_mb=peak(300),
        runtime=grown(10),
    params:
        library=library("compile_paper.py"),
    script:
        "../scripts/compile_paper.py"
