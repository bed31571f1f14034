# The search for one cell's hyper-parameters: trained on the train split, scored on the validation split. It never sees
# the test split. A journal beside the trials lets an interrupted search continue.


rule tune_entry:
    input:
        train=lambda wildcards: learnt_from(wildcards, ["train"]),
        validation=lambda wildcards: feature_files(wildcards.dataset, wildcards.features, "validation"),
        kept=lambda wildcards: kept_for(wildcards.features, start_of(wildcards)),
        start=start_files,
        public=public_points,
        code=tuning_code,
    output:
        trials=f"results/tuning/{CELL}/trials.parquet",
    log:
        f"results/logs/tune_entry/{CELL}.log",
    benchmark:
        f"results/benchmarks/tune_entry/{CELL}.tsv"
    conda:
        "../../envs/study.yaml"
    threads: 1
    resources:
        mem_mb=peak(tuning_memory),
        runtime=grown(1440),
        gpu=lambda wildcards: gpu() if wildcards.entry in entries_where(curve=True) else 0,
    params:
        options=options_of,
        scaling=lambda wildcards: as_they_are(wildcards.features),
        library=lambda wildcards: cell_library(wildcards, "tune_entry.py"),
        dataset=lambda wildcards: dataset_facts(wildcards.dataset),
        noise=STUDY["noise"],
        metrics=STUDY["evaluation"]["metrics"][:1],
    script:
        "../scripts/tune_entry.py"
