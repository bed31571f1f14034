# Features of every image, shard by shard: an interrupted extraction continues where it stopped.


rule extract_shard:
    input:
        extraction_inputs,
        code=lambda wildcards: code("extract_shard.py", extractor_module(wildcards)),
    output:
        shard="results/features/{dataset}/{features}/{split}/part-{shard}.parquet",
    log:
        "results/logs/extract_shard/{dataset}/{features}/{split}/{shard}.log",
    benchmark:
        "results/benchmarks/extract_shard/{dataset}/{features}/{split}/{shard}.tsv"
    conda:
        "../../envs/study.yaml"
    threads: 1
    resources:
        mem_mb=peak(extraction_memory),
        runtime=grown(240),
        gpu=extraction_gpu,
    params:
        library=lambda wildcards: library("extract_shard.py", extractor_module(wildcards)),
        options=extraction_options,
        backbone=lambda wildcards: backbone_folder(STUDY["features"][wildcards.features]),
        fit=lambda wildcards: fit_folder(STUDY["features"][wildcards.features]),
    script:
        "../scripts/extract_shard.py"


rule extract_manifest:
    input:
        shards=lambda wildcards: parts(
            f"results/features/{wildcards.dataset}/{wildcards.features}/{wildcards.split}", wildcards.dataset
        ),
        images="results/data/{dataset}/{split}/manifest.json",
        code=code("extract_manifest.py"),
    output:
        manifest="results/features/{dataset}/{features}/{split}/manifest.json",
    log:
        "results/logs/extract_manifest/{dataset}/{features}/{split}.log",
    benchmark:
        "results/benchmarks/extract_manifest/{dataset}/{features}/{split}.tsv"
    conda:
        "../../envs/study.yaml"
    threads: 1
    resources:
        mem_mb=peak(description_memory),
        runtime=grown(30),
    params:
        library=library("extract_manifest.py"),
    script:
        "../scripts/extract_manifest.py"
