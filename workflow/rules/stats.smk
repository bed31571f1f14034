# Sums over the private records of a split, one pass for every epsilon, regulariser, seed and trial. Nothing here is
# published.


rule sum_statistics:
    input:
        features=lambda wildcards: feature_files(wildcards.dataset, wildcards.features, wildcards.split),
        kept=lambda wildcards: kept_for(wildcards.features),
        code=code("sum_statistics.py"),
    output:
        "results/private/statistics/{dataset}/{features}/{split}/clip={clip}/{grams}.safetensors",
    log:
        "results/logs/sum_statistics/{dataset}/{features}/{split}/clip={clip}/{grams}.log",
    benchmark:
        "results/benchmarks/sum_statistics/{dataset}/{features}/{split}/clip={clip}/{grams}.tsv"
    conda:
        "../../envs/study.yaml"
    threads: 1
    resources:
        mem_mb=grown(streaming_memory(2000, 2)),
        runtime=grown(120),
        gpu=gpu(),
    params:
        positives=lambda wildcards: STUDY["datasets"][wildcards.dataset]["positives"],
    script:
        "../scripts/sum_statistics.py"
