# Networks pre-trained on public data.


def kept_for_training(wildcards):
    """What de-duplication kept of the public set; nothing where it drops private records: then the network does not
    depend on them at all."""
    if STUDY["dedup"]["drop"] == "private":
        return []
    return [f"results/dedup/{STUDY['backbones'][wildcards.backbone]['public']}/kept.parquet"]


rule pretrain_backbone:
    input:
        public=lambda wildcards: all_splits([STUDY["backbones"][wildcards.backbone]["public"]]),
        kept=kept_for_training,
        code=code("pretrain_backbone.py"),
    output:
        model="results/backbones/{backbone}/model.safetensors",
        card="results/backbones/{backbone}/card.json",
    params:
        options=lambda wildcards: STUDY["backbones"][wildcards.backbone],
        drop=STUDY["dedup"]["drop"],
    log:
        "results/logs/pretrain_backbone/{backbone}.log",
    benchmark:
        "results/benchmarks/pretrain_backbone/{backbone}.tsv"
    threads: 1
    resources:
        mem_mb=memory(3000, 4),
        runtime=240,
        gpu=gpu(),
    conda:
        "../../envs/study.yaml"
    script:
        "../scripts/pretrain_backbone.py"
