# Which images a public set shares with any split of any private set.


rule describe_images:
    input:
        embedding_files,
        manifest="results/data/{source}/{split}/manifest.json",
        shard="results/data/{source}/{split}/part-{shard}.parquet",
        code=code("describe_images.py", embedding_module()),
    output:
        description="results/dedup/images/{source}/{split}/part-{shard}.safetensors",
    log:
        "results/logs/describe_images/{source}/{split}/{shard}.log",
    benchmark:
        "results/benchmarks/describe_images/{source}/{split}/{shard}.tsv"
    conda:
        "../../envs/study.yaml"
    threads: 1
    resources:
        mem_mb=peak(memory(900, 20)),
        runtime=grown(240),
    params:
        library=library("describe_images.py", embedding_module()),
        private=lambda wildcards: wildcards.source in STUDY["datasets"],
        embedding=embedding_options(),
        backbone=backbone_folder(embedding_options() or {}),
    script:
        "../scripts/describe_images.py"


rule fit_dedup_basis:
    input:
        descriptions=lambda wildcards: descriptions(wildcards.public, ["train"])[:8],
        code=code("fit_dedup_basis.py"),
    output:
        basis="results/dedup/{public}/basis.safetensors",
    log:
        "results/logs/fit_dedup_basis/{public}.log",
    benchmark:
        "results/benchmarks/fit_dedup_basis/{public}.tsv"
    conda:
        "../../envs/study.yaml"
    threads: 1
    resources:
        mem_mb=peak(memory(86, 6.2)),
        runtime=grown(30),
    params:
        library=library("fit_dedup_basis.py"),
    script:
        "../scripts/fit_dedup_basis.py"


rule search_shard:
    input:
        public="results/dedup/images/{public}/{split}/part-{shard}.safetensors",
        private=[path for dataset in private_images() for path in descriptions(dataset)],
        manifest="results/data/{public}/{split}/manifest.json",
        basis="results/dedup/{public}/basis.safetensors",
        code=code("search_shard.py"),
    output:
        found="results/dedup/{public}/candidates/{split}/part-{shard}.safetensors",
    log:
        "results/logs/search_shard/{public}/{split}/{shard}.log",
    benchmark:
        "results/benchmarks/search_shard/{public}/{split}/{shard}.tsv"
    conda:
        "../../envs/study.yaml"
    threads: 1
    resources:
        mem_mb=peak(lambda wildcards, input: int(650 + 5.5 * max(input.size_files_mb))),
        runtime=grown(240),
    params:
        library=library("search_shard.py"),
        public=lambda wildcards: described(wildcards.public, wildcards.split, int(wildcards.shard)),
        private=[
            [f"{dataset}/{split}/{shard:05d}", *described(dataset, split, shard)]
            for dataset in private_images()
            for split, shard in shards_of(dataset)
        ],
    script:
        "../scripts/search_shard.py"


rule align_shard:
    input:
        searched=lambda wildcards: [
            f"results/dedup/{wildcards.public}/candidates/{split}/part-{shard:05d}.safetensors"
            for split, shard in shards_of(wildcards.public)
        ],
        public=lambda wildcards: descriptions(wildcards.public),
        public_ids=lambda wildcards: all_splits([wildcards.public]),
        private="results/dedup/images/{dataset}/{split}/part-{shard}.safetensors",
        private_ids="results/data/{dataset}/{split}/part-{shard}.parquet",
        manifest="results/data/{dataset}/{split}/manifest.json",
        basis="results/dedup/{public}/basis.safetensors",
        code=code("align_shard.py"),
    output:
        part="results/dedup/{public}/parts/{dataset}/{split}/part-{shard}.parquet",
    log:
        "results/logs/align_shard/{public}/{dataset}/{split}/{shard}.log",
    benchmark:
        "results/benchmarks/align_shard/{public}/{dataset}/{split}/{shard}.tsv"
    conda:
        "../../envs/study.yaml"
    threads: 1
    resources:
        mem_mb=peak(aligning_memory),
        runtime=grown(480),
    params:
        library=library("align_shard.py"),
        public=lambda wildcards: [
            [split, *described(wildcards.public, split, shard)] for split, shard in shards_of(wildcards.public)
        ],
        private=lambda wildcards: described(wildcards.dataset, wildcards.split, int(wildcards.shard)),
        rule=rule_options(),
    script:
        "../scripts/align_shard.py"


rule calibrate_dedup:
    input:
        embedding_files,
        manifest="results/data/{dataset}/train/manifest.json",
        shard="results/data/{dataset}/train/part-00000.parquet",
        private="results/dedup/images/{dataset}/train/part-00000.safetensors",
        public="results/dedup/images/{public}/train/part-00000.safetensors",
        basis="results/dedup/{public}/basis.safetensors",
        code=code("calibrate_dedup.py", embedding_module()),
    output:
        counts="results/dedup/{public}/calibration/{dataset}.json",
    log:
        "results/logs/calibrate_dedup/{public}/{dataset}.log",
    benchmark:
        "results/benchmarks/calibrate_dedup/{public}/{dataset}.tsv"
    conda:
        "../../envs/study.yaml"
    threads: 1
    resources:
        mem_mb=peak(int(760 + 5.2 * STUDY["dedup"].get("sample", 200))),
        runtime=grown(120),
    params:
        library=library("calibrate_dedup.py", embedding_module()),
        rule=rule_options(),
        sample=STUDY["dedup"].get("sample", 200),
        embedding=embedding_options(),
        backbone=backbone_folder(embedding_options() or {}),
    script:
        "../scripts/calibrate_dedup.py"


if STUDY["dedup"]["method"] == "squares":

    rule match_public:
        input:
            public=lambda wildcards: all_splits([wildcards.public]),
            private=all_splits(private_images()),
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
            mem_mb=peak(memory(215, 12)),
            runtime=grown(240),
        params:
            library=library("match_public.py"),
            drop=STUDY["dedup"]["drop"],
            threshold=STUDY["dedup"].get("threshold"),
            public=lambda wildcards: {
                split: f"results/data/{wildcards.public}/{split}" for split in splits_of(wildcards.public)
            },
            private=[
                [dataset, split, f"results/data/{dataset}/{split}"]
                for dataset in private_images()
                for split in splits_of(dataset)
            ],
        script:
            "../scripts/match_public.py"

else:

    rule merge_matches:
        input:
            parts=lambda wildcards: (
                []
                if drawn(wildcards.public)
                else [
                    f"results/dedup/{wildcards.public}/parts/{dataset}/{split}/part-{shard:05d}.parquet"
                    for dataset in private_images()
                    for split, shard in shards_of(dataset)
                ]
            ),
            calibrations=lambda wildcards: (
                []
                if drawn(wildcards.public)
                else [f"results/dedup/{wildcards.public}/calibration/{dataset}.json" for dataset in private_images()]
            ),
            ids=lambda wildcards: all_splits([wildcards.public, *private_images()]),
            code=code("merge_matches.py"),
        output:
            matches="results/dedup/{public}/matches.parquet",
            kept="results/dedup/{public}/kept.parquet",
            report="results/dedup/{public}/report.json",
            picture="results/dedup/{public}/matches.png",
        log:
            "results/logs/merge_matches/{public}.log",
        benchmark:
            "results/benchmarks/merge_matches/{public}.tsv"
        conda:
            "../../envs/study.yaml"
        threads: 1
        resources:
            mem_mb=peak(memory(880, 0.1)),
            runtime=grown(120),
        params:
            library=library("merge_matches.py"),
            drop=STUDY["dedup"]["drop"],
            rule=rule_options(),
            drawn=lambda wildcards: drawn(wildcards.public),
            public=lambda wildcards: {
                split: f"results/data/{wildcards.public}/{split}" for split in splits_of(wildcards.public)
            },
            private=[
                [dataset, split, f"results/data/{dataset}/{split}"]
                for dataset in private_images()
                for split in splits_of(dataset)
            ],
        script:
            "../scripts/merge_matches.py"
