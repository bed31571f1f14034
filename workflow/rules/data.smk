# Images and labels of every data set, private and public, as parquet shards.


rule prepare_shard:
    input:
        planted=ask(sources.planted_files, "source", "split", "shard"),
        table=ask(sources.source_table, "source"),
        code=ask(code.reading_code, "source"),
    output:
        shard=paths.DATA_SHARD,
    log:
        paths.log("prepare_shard", "{source}/{split}/{shard}"),
    benchmark:
        paths.benchmark("prepare_shard", "{source}/{split}/{shard}")
    conda:
        ENVIRONMENT
    resources:
        mem_mb=peak(data_resources.preparation),
        runtime=grown(30),
    params:
        library=hash_of(code.reading_code, "source"),
        options=ask(sources.reading_options, "source"),
        private=ask(sources.is_private, "source"),
        numbered=ask(sources.numbered, "source"),
        images=ask(sources.state_of_images, "source"),
        checked_by=ask(sources.checking_options, "source"),
    script:
        "../scripts/prepare_shard.py"


rule prepare_manifest:
    input:
        shards=ask(sources.shard_files, "source", "split"),
        others=ask(sources.other_splits, "source", "split"),
        code=ask(code.describing_code, "source"),
    output:
        manifest=paths.DATA_MANIFEST,
    log:
        paths.log("prepare_manifest", "{source}/{split}"),
    benchmark:
        paths.benchmark("prepare_manifest", "{source}/{split}")
    conda:
        ENVIRONMENT
    resources:
        mem_mb=peak(data_resources.description_of_images),
        runtime=grown(30),
    params:
        library=hash_of(code.describing_code, "source"),
        options=ask(sources.reading_options, "source"),
        private=ask(sources.is_private, "source"),
        where=ask(sources.place_of_data),
    script:
        "../scripts/prepare_manifest.py"
