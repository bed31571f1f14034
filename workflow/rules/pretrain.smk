# Networks pre-trained on public data.


rule pretrain_backbone:
    input:
        public=lambda wildcards: all_splits([STUDY["backbones"][wildcards.backbone]["public"]]),
        kept=lambda wildcards: kept_for_training(STUDY["backbones"][wildcards.backbone]["public"]),
        code=code("pretrain_backbone.py"),
    output:
        model="results/backbones/{backbone}/model.safetensors",
        card="results/backbones/{backbone}/card.json",
    log:
        "results/logs/pretrain_backbone/{backbone}.log",
    benchmark:
        "results/benchmarks/pretrain_backbone/{backbone}.tsv"
    conda:
        "../../envs/study.yaml"
    threads: 1
    resources:
        mem_mb=memory(3000, 4),
        runtime=240,
        gpu=gpu(),
    params:
        options=lambda wildcards: STUDY["backbones"][wildcards.backbone],
        drop=STUDY["dedup"]["drop"],
    script:
        "../scripts/pretrain_backbone.py"
