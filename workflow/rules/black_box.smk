# Attacks by the loss of trained models on one record (de2022 A.2), for the entries that `black_box` names.


rule audit_black_box:
    input:
        train=lambda wildcards: feature_files(wildcards.dataset, wildcards.features, "train"),
        test=lambda wildcards: feature_files(wildcards.dataset, wildcards.features, "test"),
        start=start_files,
        code=lambda wildcards: cell_code(wildcards, "audit_black_box.py"),
    output:
        f"results/audit/{CELL}/black-box.json",
    log:
        f"results/logs/audit_black_box/{CELL}.log",
    benchmark:
        f"results/benchmarks/audit_black_box/{CELL}.tsv"
    wildcard_constraints:
        entry=alternatives(STUDY["black_box"]["entries"]),
        epsilon=alternatives(epsilon for epsilon in STUDY["epsilons"] if epsilon != "inf"),
    conda:
        "../../envs/study.yaml"
    threads: 1
    resources:
        mem_mb=peak(lambda w, input: with_gpu(1100) + engine_memory(options_of(w), input) + int(6 * input.size_mb)),
        runtime=grown(1440),
        gpu=gpu(),
    params:
        options=options_of,
        scaling=lambda wildcards: as_they_are(wildcards.features),
        library=lambda wildcards: cell_library(wildcards, "audit_black_box.py"),
        dataset=lambda wildcards: dataset_facts(wildcards.dataset),
        noise=STUDY["noise"],
        black_box=lambda wildcards: black_box_options.options_for(STUDY, wildcards.entry),
    script:
        "../scripts/audit_black_box.py"
