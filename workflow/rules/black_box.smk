# Attacks by the loss of trained models on one record (de2022 A.2), for the entries that `black_box` names.


rule audit_black_box:
    input:
        train=ask(training.attacked_files, "cell"),
        test=ask(training.test_files, "cell"),
        start=ask(training.starting_files, "cell"),
        code=ask(code.cell_code, "cell", script="audit_black_box"),
    output:
        paths.BLACK_BOX,
    log:
        paths.log("audit_black_box", paths.CELL),
    benchmark:
        paths.benchmark("audit_black_box", paths.CELL)
    wildcard_constraints:
        entry=names.alternatives(STUDY["black_box"]["entries"]),
        epsilon=names.finite(STUDY),
    conda:
        ENVIRONMENT
    resources:
        mem_mb=peak(resources.black_box),
        runtime=grown(1440),
        gpu=resources.gpus(),
    params:
        request=ask(training.request_of_one_seed, "cell", script="audit_black_box"),
        inputs=ask(training.black_box_inputs, "cell"),
        black_box=ask(training.black_box_options, "cell"),
    script:
        "../scripts/audit_black_box.py"
