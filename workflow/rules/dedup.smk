# Which images a public set shares with any split of any private set.


rule describe_images:
    input:
        dedup.embedding_files(STUDY),
        manifest=paths.DATA_MANIFEST,
        shard=paths.DATA_SHARD,
        code=code.embedding_code(STUDY, "describe_images"),
    output:
        description=paths.DESCRIPTION,
    log:
        paths.log("describe_images", "{source}/{split}/{shard}"),
    benchmark:
        paths.benchmark("describe_images", "{source}/{split}/{shard}")
    conda:
        ENVIRONMENT
    resources:
        mem_mb=peak(resources.by_size(900, 20)),
        runtime=grown(240),
    params:
        library=library_hash(code.embedding_code(STUDY, "describe_images")),
        folder=ask(sources.folder, "source", "split"),
        private=ask(sources.is_private, "source"),
        embedding=dedup.embedding_options(STUDY),
        backbone=publics.backbone_folder(dedup.embedding_options(STUDY) or {}),
        where=ask(sources.place_of_data),
    script:
        "../scripts/describe_images.py"


rule fit_dedup_basis:
    input:
        descriptions=ask(dedup.basis_files, "public"),
        code=code.script_code("fit_dedup_basis"),
    output:
        basis=paths.BASIS,
    log:
        paths.log("fit_dedup_basis", "{public}"),
    benchmark:
        paths.benchmark("fit_dedup_basis", "{public}")
    conda:
        ENVIRONMENT
    resources:
        mem_mb=peak(resources.by_size(86, 6.2)),
        runtime=grown(30),
    params:
        library=code.script_hash("fit_dedup_basis"),
    script:
        "../scripts/fit_dedup_basis.py"


rule search_shard:
    input:
        public=paths.DESCRIPTION.replace("{source}", "{public}"),
        private=dedup.all_private_descriptions(STUDY),
        manifest=paths.DATA_MANIFEST.replace("{source}", "{public}"),
        basis=paths.BASIS,
        code=code.script_code("search_shard"),
    output:
        found=paths.CANDIDATES,
    log:
        paths.log("search_shard", "{public}/{split}/{shard}"),
    benchmark:
        paths.benchmark("search_shard", "{public}/{split}/{shard}")
    conda:
        ENVIRONMENT
    resources:
        mem_mb=peak(resources.by_largest(650, 5.5)),
        runtime=grown(240),
    params:
        library=code.script_hash("search_shard"),
        public=ask(dedup.described_shard, "public", "split", "shard"),
        private=dedup.all_private_shards(STUDY),
    script:
        "../scripts/search_shard.py"


rule align_shard:
    input:
        searched=ask(dedup.candidate_files, "public"),
        public=ask(dedup.descriptions, "public"),
        public_ids=ask(sources.all_files, "public"),
        private=paths.DESCRIPTION.replace("{source}", "{dataset}"),
        private_ids=paths.DATA_SHARD.replace("{source}", "{dataset}"),
        manifest=paths.DATA_MANIFEST.replace("{source}", "{dataset}"),
        basis=paths.BASIS,
        code=code.script_code("align_shard"),
    output:
        part=paths.COPIES,
    log:
        paths.log("align_shard", "{public}/{dataset}/{split}/{shard}"),
    benchmark:
        paths.benchmark("align_shard", "{public}/{dataset}/{split}/{shard}")
    conda:
        ENVIRONMENT
    resources:
        mem_mb=peak(data_resources.aligning),
        runtime=grown(480),
    params:
        library=code.script_hash("align_shard"),
        public=ask(dedup.public_shards, "public"),
        private=ask(dedup.described_shard, "dataset", "split", "shard"),
        rule=dedup.rule_options(STUDY),
    script:
        "../scripts/align_shard.py"


rule calibrate_dedup:
    input:
        dedup.embedding_files(STUDY),
        manifest=dedup.first_of_training(paths.DATA_MANIFEST, "{dataset}"),
        shard=dedup.first_of_training(paths.DATA_SHARD, "{dataset}"),
        private=dedup.first_of_training(paths.DESCRIPTION, "{dataset}"),
        public=dedup.first_of_training(paths.DESCRIPTION, "{public}"),
        basis=paths.BASIS,
        code=code.embedding_code(STUDY, "calibrate_dedup"),
    output:
        counts=paths.CALIBRATION,
    log:
        paths.log("calibrate_dedup", "{public}/{dataset}"),
    benchmark:
        paths.benchmark("calibrate_dedup", "{public}/{dataset}")
    conda:
        ENVIRONMENT
    resources:
        mem_mb=peak(data_resources.calibration),
        runtime=grown(120),
    params:
        library=library_hash(code.embedding_code(STUDY, "calibrate_dedup")),
        folder=ask(sources.folder, "dataset", split="train"),
        rule=dedup.rule_options(STUDY),
        sample=STUDY["dedup"].get("sample", 200),
        embedding=dedup.embedding_options(STUDY),
        backbone=publics.backbone_folder(dedup.embedding_options(STUDY) or {}),
        where=ask(sources.place_of_data),
    script:
        "../scripts/calibrate_dedup.py"


if STUDY["dedup"]["method"] == "squares":

    rule match_public:
        input:
            compared=ask(dedup.compared_files, "public"),
            code=code.script_code("match_public"),
        output:
            matches=paths.MATCHES,
            kept=paths.KEPT,
            report=paths.DEDUP_REPORT,
        log:
            paths.log("match_public", "{public}"),
        benchmark:
            paths.benchmark("match_public", "{public}")
        conda:
            ENVIRONMENT
        resources:
            mem_mb=peak(data_resources.comparing),
            runtime=grown(240),
        params:
            library=code.script_hash("match_public"),
            drop=STUDY["dedup"]["drop"],
            threshold=STUDY["dedup"].get("threshold"),
            public=ask(dedup.split_folders, "public"),
            private=dedup.private_folders(STUDY),
        script:
            "../scripts/match_public.py"

else:

    rule merge_matches:
        input:
            parts=ask(dedup.copies_files, "public"),
            calibrations=ask(dedup.calibrations, "public"),
            ids=ask(dedup.compared_files, "public"),
            code=code.script_code("merge_matches"),
        output:
            matches=paths.MATCHES,
            kept=paths.KEPT,
            report=paths.DEDUP_REPORT,
            picture=paths.MATCHES_PICTURE,
        log:
            paths.log("merge_matches", "{public}"),
        benchmark:
            paths.benchmark("merge_matches", "{public}")
        conda:
            ENVIRONMENT
        resources:
            mem_mb=peak(resources.by_size(880, 0.1)),
            runtime=grown(120),
        params:
            library=code.script_hash("merge_matches"),
            drop=STUDY["dedup"]["drop"],
            rule=dedup.rule_options(STUDY),
            drawn=ask(dedup.is_drawn, "public"),
            public=ask(dedup.split_folders, "public"),
            private=dedup.private_folders(STUDY),
        script:
            "../scripts/merge_matches.py"
