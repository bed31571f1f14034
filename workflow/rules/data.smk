# Images and labels of every data set, private and public, as parquet shards.


rule prepare_shard:
    input:
        planted=planted_from,
        table=source_table,
        code=lambda wildcards: code("prepare_shard.py", *reader_modules(wildcards.source)),
    output:
        shard="results/data/{source}/{split}/part-{shard}.parquet",
    log:
        "results/logs/prepare_shard/{source}/{split}/{shard}.log",
    benchmark:
        "results/benchmarks/prepare_shard/{source}/{split}/{shard}.tsv"
    conda:
        "../../envs/study.yaml"
    threads: 1
    resources:
        mem_mb=peak(preparation_memory),
        runtime=grown(30),
    params:
        library=lambda wildcards: library("prepare_shard.py", *reader_modules(wildcards.source)),
        options=lambda wildcards: reading_options(wildcards.source),
        private=lambda wildcards: wildcards.source in STUDY["datasets"],
        numbered=lambda wildcards: numbered(wildcards.source),
        images=lambda wildcards: state_of_images(wildcards.source),
    script:
        "../scripts/prepare_shard.py"


rule prepare_manifest:
    input:
        shards=lambda wildcards: parts(f"results/data/{wildcards.source}/{wildcards.split}", wildcards.source),
        others=other_splits,
        code=lambda wildcards: code("prepare_manifest.py", *reader_modules(wildcards.source)),
    output:
        manifest="results/data/{source}/{split}/manifest.json",
    log:
        "results/logs/prepare_manifest/{source}/{split}.log",
    benchmark:
        "results/benchmarks/prepare_manifest/{source}/{split}.tsv"
    conda:
        "../../envs/study.yaml"
    threads: 1
    resources:
        mem_mb=peak(manifest_memory),
        runtime=grown(30),
    params:
        library=lambda wildcards: library("prepare_manifest.py", *reader_modules(wildcards.source)),
        options=lambda wildcards: reading_options(wildcards.source),
        private=lambda wildcards: wildcards.source in STUDY["datasets"],
    script:
        "../scripts/prepare_manifest.py"
