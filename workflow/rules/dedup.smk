# Which images a public set shares with any split of any private set.


rule match_public:
    input:
        public=lambda wildcards: all_splits([wildcards.public]),
        private=all_splits(filter(with_images, STUDY["datasets"])),
        code=code("match_public.py"),
    output:
        matches="results/dedup/{public}/matches.parquet",
        kept="results/dedup/{public}/kept.parquet",
        report="results/dedup/{public}/report.json",
    log:
        "results/logs/match_public/{public}.log",
    benchmark:
        "results/benchmarks/match_public/{public}.tsv"
    conda:
        "../../envs/study.yaml"
    threads: 1
    resources:
        mem_mb=memory(2000, 4),
        runtime=240,
    params:
        drop=STUDY["dedup"]["drop"],
        threshold=STUDY["dedup"]["threshold"],
        public=lambda wildcards: {
            split: f"results/data/{wildcards.public}/{split}" for split in splits_of(wildcards.public)
        },
        private=[
            [dataset, split, f"results/data/{dataset}/{split}"]
            for dataset in filter(with_images, STUDY["datasets"])
            for split in splits_of(dataset)
        ],
    script:
        "../scripts/match_public.py"
