# Attacks on what methods release: a lower bound on epsilon for each cell that the study names, or that is asked for.


rule audit_cell:
    input:
        files=ask(training.audit_files, "cell"),
        code=ask(code.cell_code, "cell", script="audit_cell"),
    output:
        paths.AUDIT,
    log:
        paths.log("audit_cell", paths.CELL),
    benchmark:
        paths.benchmark("audit_cell", paths.CELL)
    wildcard_constraints:
        entry=names.alternatives(training.entries_of_audits(STUDY)),
        epsilon=names.finite(STUDY),
    conda:
        ENVIRONMENT
    resources:
        mem_mb=peak(resources.audit),
        runtime=grown(240),
    params:
        request=ask(training.request_of_one_seed, "cell", script="audit_cell"),
        inputs=ask(training.audit_inputs, "cell"),
        audit=training.audit_options(STUDY),
    script:
        "../scripts/audit_cell.py"
