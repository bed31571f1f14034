# Images and labels of every data set, private and public, as parquet shards.


def planted_from(wildcards):
    """The private shards that a demonstration plants in the last shard of a public training split."""
    last = f"{SOURCES[wildcards.source]['shards'] - 1:05d}"
    if wildcards.source not in PLANTED or wildcards.split != "train" or wildcards.shard != last:
        return []
    plant = SOURCES[wildcards.source]["plant"]
    return with_manifest(f"results/data/{plant['dataset']}/{plant['split']}", plant["dataset"])


def source_table(wildcards):
    """The user's table of paths and labels, where there is one: an edit of it makes the shards anew."""
    options = SOURCES[wildcards.source]
    if "table" not in options:
        return []
    return [str(Path(study_config.data_root(STUDY)) / options["location"] / options["table"])]


rule prepare_shard:
    input:
        planted=planted_from,
        table=source_table,
        code=lambda wildcards: code(
            "prepare_shard.py", f"dpstudy.data.readers.{SOURCES[wildcards.source]['reader']}"
        ),
    output:
        shard="results/data/{source}/{split}/part-{shard}.parquet",
    params:
        options=lambda wildcards: SOURCES[wildcards.source],
        private=lambda wildcards: wildcards.source in STUDY["datasets"],
    log:
        "results/logs/prepare_shard/{source}/{split}/{shard}.log",
    benchmark:
        "results/benchmarks/prepare_shard/{source}/{split}/{shard}.tsv"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=30,
    conda:
        "../../envs/study.yaml"
    script:
        "../scripts/prepare_shard.py"


rule prepare_manifest:
    input:
        shards=lambda wildcards: parts(f"results/data/{wildcards.source}/{wildcards.split}", wildcards.source),
        code=lambda wildcards: code(
            "prepare_manifest.py", f"dpstudy.data.readers.{SOURCES[wildcards.source]['reader']}"
        ),
    output:
        manifest="results/data/{source}/{split}/manifest.json",
    params:
        options=lambda wildcards: SOURCES[wildcards.source],
        private=lambda wildcards: wildcards.source in STUDY["datasets"],
    log:
        "results/logs/prepare_manifest/{source}/{split}.log",
    benchmark:
        "results/benchmarks/prepare_manifest/{source}/{split}.tsv"
    threads: 1
    resources:
        mem_mb=memory(1000, 3),
        runtime=30,
    conda:
        "../../envs/study.yaml"
    script:
        "../scripts/prepare_manifest.py"
