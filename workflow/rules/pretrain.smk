# Networks pre-trained on public data, here or elsewhere.


rule convert_weights:
    input:
        code=code.script_code("convert_weights"),
    output:
        model=paths.PACKAGED_MODEL,
        card=paths.PACKAGED_CARD,
    log:
        paths.log("convert_weights", "{package}"),
    benchmark:
        paths.benchmark("convert_weights", "{package}")
    conda:
        ENVIRONMENT
    resources:
        mem_mb=peak(1000),
        runtime=grown(10),
    params:
        library=code.script_hash("convert_weights"),
    script:
        "../scripts/convert_weights.py"


rule pretrain_backbone:
    input:
        public=ask(publics.images_of_backbone, "backbone"),
        kept=ask(publics.kept_for_backbone, "backbone"),
        code=code.script_code("pretrain_backbone", "dpstudy.pretraining.rank"),
    output:
        model=paths.BACKBONE_MODEL,
        card=paths.BACKBONE_CARD,
    log:
        paths.log("pretrain_backbone", "{backbone}"),
    benchmark:
        paths.benchmark("pretrain_backbone", "{backbone}")
    priority: 1  # the longest jobs first
    conda:
        ENVIRONMENT
    threads: ask(publics.threads_of_backbone, "backbone")
    resources:
        mem_mb=peak(data_resources.pretraining),
        runtime=grown(1440),
        gpu=ask(data_resources.pretraining_gpus, "backbone"),
    params:
        library=code.script_hash("pretrain_backbone", "dpstudy.pretraining.rank"),
        options=ask(sources.entry_of, "backbone", of="backbones"),
        folder=ask(publics.public_folder, "backbone", of="backbones"),
        dedup=ask(publics.matching_of_backbone, "backbone"),
        checkpoint=paths.BACKBONE_CHECKPOINT,
    script:
        "../scripts/pretrain_backbone.py"
