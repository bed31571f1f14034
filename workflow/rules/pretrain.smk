# Networks pre-trained on public data.


rule pretrain_backbone:
    input:
        public=lambda wildcards: all_splits([STUDY["backbones"][wildcards.backbone]["public"]]),
        kept=lambda wildcards: kept_for_training(STUDY["backbones"][wildcards.backbone]["public"]),
        code=code("pretrain_backbone.py", "dpstudy.pretraining.rank"),
    output:
        model="results/backbones/{backbone}/model.safetensors",
        card="results/backbones/{backbone}/card.json",
    log:
        "results/logs/pretrain_backbone/{backbone}.log",
    benchmark:
        "results/benchmarks/pretrain_backbone/{backbone}.tsv"
    priority: 1  # the longest jobs first
    conda:
        "../../envs/study.yaml"
    threads: pretraining_threads
    resources:
        mem_mb=peak(pretraining_memory),
        runtime=grown(1440),
        gpu=lambda wildcards: pretraining_devices(wildcards) * gpu(),
    params:
        library=library("pretrain_backbone.py", "dpstudy.pretraining.rank"),
        options=lambda wildcards: STUDY["backbones"][wildcards.backbone],
        dedup=lambda wildcards: matching_of(STUDY["backbones"][wildcards.backbone]["public"]),
        checkpoint=lambda wildcards: f"results/backbones/{wildcards.backbone}/checkpoint.safetensors",
    script:
        "../scripts/pretrain_backbone.py"
