# Which images a public set shares with any split of any private set.


def with_images(dataset):
    """Whether a data set brings images."""
    return STUDY["datasets"][dataset]["reader"] != "labels"


def all_splits(sources):
    """Manifests and shards of every split of these data sets."""
    return [
        path
        for source in sources
        for split in splits_of(source)
        for path in with_manifest(f"results/data/{source}/{split}", source)
    ]


rule match_public:
    input:
        public=lambda wildcards: all_splits([wildcards.public]),
        private=all_splits(filter(with_images, STUDY["datasets"])),
        code=code("match_public.py"),
    output:
        matches="results/dedup/{public}/matches.parquet",
        kept="results/dedup/{public}/kept.parquet",
        report="results/dedup/{public}/report.json",
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
    log:
        "results/logs/match_public/{public}.log",
    benchmark:
        "results/benchmarks/match_public/{public}.tsv"
    threads: 1
    resources:
        mem_mb=memory(2000, 4),
        runtime=240,
    conda:
        "../../envs/study.yaml"
    script:
        "../scripts/match_public.py"
