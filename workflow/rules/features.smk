# Features of every image, shard by shard: an interrupted extraction continues where it stopped.


rule extract_shard:
    input:
        ask(publics.extraction_inputs, "dataset", "features", "split", "shard"),
        code=ask(code.extraction_code, "features"),
    output:
        shard=paths.FEATURES_SHARD,
    log:
        paths.log("extract_shard", "{dataset}/{features}/{split}/{shard}"),
    benchmark:
        paths.benchmark("extract_shard", "{dataset}/{features}/{split}/{shard}")
    conda:
        ENVIRONMENT
    resources:
        mem_mb=peak(data_resources.extraction),
        runtime=grown(240),
        gpu=ask(data_resources.extraction_gpus, "features"),
    params:
        library=hash_of(code.extraction_code, "features"),
        images=ask(sources.folder, "dataset", "split"),
        options=ask(publics.extraction_of_split, "features", "split"),
        backbone=ask(publics.backbone_folder_of_features, "features"),
        fit=ask(publics.fit_folder_of_features, "features"),
        where=ask(sources.place_of_data),
    script:
        "../scripts/extract_shard.py"


rule extract_manifest:
    input:
        shards=ask(sources.feature_shards, "dataset", "features", "split"),
        images=paths.DATA_MANIFEST.replace("{source}", "{dataset}"),
        code=code.script_code("extract_manifest"),
    output:
        manifest=paths.FEATURES_MANIFEST,
    log:
        paths.log("extract_manifest", "{dataset}/{features}/{split}"),
    benchmark:
        paths.benchmark("extract_manifest", "{dataset}/{features}/{split}")
    conda:
        ENVIRONMENT
    resources:
        mem_mb=peak(data_resources.description_of_features),
        runtime=grown(30),
    params:
        library=code.script_hash("extract_manifest"),
        images=ask(sources.folder, "dataset", "split"),
    script:
        "../scripts/extract_manifest.py"
