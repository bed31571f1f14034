# Features of every image, shard by shard: an interrupted extraction continues where it stopped.


def backbone_folder(wildcards):
    """Where the backbone of a feature set lies; None for an extractor without one."""
    backbone = STUDY["features"][wildcards.features].get("backbone")
    return f"results/backbones/{backbone}" if backbone else None


def extraction_inputs(wildcards):
    """The image shard with its manifest, and the backbone where the extractor has one."""
    folder = f"results/data/{wildcards.dataset}/{wildcards.split}"
    network = backbone_folder(wildcards)
    network = [f"{network}/{name}" for name in ("model.safetensors", "card.json")] if network else []
    return [f"{folder}/manifest.json", f"{folder}/part-{wildcards.shard}.parquet", *network]


def extractor_module(wildcards):
    """The module of a feature set's extractor."""
    return f"dpstudy.features.{STUDY['features'][wildcards.features]['extractor']}"


rule extract_shard:
    input:
        extraction_inputs,
        code=lambda wildcards: code("extract_shard.py", extractor_module(wildcards)),
    output:
        shard="results/features/{dataset}/{features}/{split}/part-{shard}.parquet",
    params:
        options=lambda wildcards: STUDY["features"][wildcards.features],
        backbone=backbone_folder,
    log:
        "results/logs/extract_shard/{dataset}/{features}/{split}/{shard}.log",
    benchmark:
        "results/benchmarks/extract_shard/{dataset}/{features}/{split}/{shard}.tsv"
    threads: 1
    resources:
        mem_mb=memory(3000, 20),
        runtime=240,
        gpu=lambda wildcards: gpu() if "backbone" in STUDY["features"][wildcards.features] else 0,
    conda:
        "../../envs/study.yaml"
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
    threads: 1
    resources:
        mem_mb=memory(1000, 3),
        runtime=30,
    conda:
        "../../envs/study.yaml"
    script:
        "../scripts/extract_manifest.py"
