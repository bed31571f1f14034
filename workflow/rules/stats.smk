# Sums over the private records of a split, one pass for every epsilon, regulariser, seed and trial; where the data set
# says `sum_jobs`, the pass is shared among so many jobs. Nothing here is published.


rule sum_statistics:
    input:
        features=lambda wildcards: feature_files(wildcards.dataset, wildcards.features, wildcards.split),
        kept=lambda wildcards: kept_for(wildcards.features),
        code=code("sum_statistics.py"),
    output:
        f"{SUMS}.safetensors",
    log:
        "results/logs/sum_statistics/{dataset}/{features}/{split}/clip={clip}/{grams}.log",
    benchmark:
        "results/benchmarks/sum_statistics/{dataset}/{features}/{split}/clip={clip}/{grams}.tsv"
    wildcard_constraints:
        dataset=alternatives(name for name in STUDY["datasets"] if sum_jobs(name) == 1),
    conda:
        "../../envs/study.yaml"
    threads: 1
    resources:
        mem_mb=peak(statistics_memory),
        runtime=grown(120),
        gpu=gpu(),
    params:
        library=library("sum_statistics.py"),
        positives=lambda wildcards: STUDY["datasets"][wildcards.dataset]["positives"],
        exact=STUDY["noise"] == "secure",
    script:
        "../scripts/sum_statistics.py"


use rule sum_statistics as sum_share with:
    input:
        features=share_files,
        kept=lambda wildcards: kept_for(wildcards.features),
        code=code("sum_statistics.py"),
    output:
        f"{SUMS}/share-{{share}}.safetensors",
    log:
        "results/logs/sum_share/{dataset}/{features}/{split}/clip={clip}/{grams}/{share}.log",
    benchmark:
        "results/benchmarks/sum_share/{dataset}/{features}/{split}/clip={clip}/{grams}/{share}.tsv"
    wildcard_constraints:
        dataset=alternatives(name for name in STUDY["datasets"] if sum_jobs(name) > 1),
    params:
        library=library("sum_statistics.py"),
        positives=lambda wildcards: STUDY["datasets"][wildcards.dataset]["positives"],
        exact=STUDY["noise"] == "secure",
        shares=lambda wildcards: sum_jobs(wildcards.dataset),


rule add_shares:
    input:
        shares=all_shares,
        code=code("add_shares.py"),
    output:
        f"{SUMS}.safetensors",
    log:
        "results/logs/add_shares/{dataset}/{features}/{split}/clip={clip}/{grams}.log",
    benchmark:
        "results/benchmarks/add_shares/{dataset}/{features}/{split}/clip={clip}/{grams}.tsv"
    wildcard_constraints:
        dataset=alternatives(name for name in STUDY["datasets"] if sum_jobs(name) > 1),
    conda:
        "../../envs/study.yaml"
    threads: 1
    resources:
        mem_mb=peak(lambda wildcards, input: int(75 + 6.3 * max(input.size_files_mb))),
        runtime=grown(30),
    params:
        library=library("add_shares.py"),
    script:
        "../scripts/add_shares.py"
