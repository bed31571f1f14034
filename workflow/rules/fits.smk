# Projections fitted on public data.


rule fit_projection:
    input:
        public=lambda wildcards: with_manifest(
            f"results/data/{STUDY['fits'][wildcards.fit]['public']}/train", STUDY["fits"][wildcards.fit]["public"]
        ),
        kept=lambda wildcards: kept_for_training(STUDY["fits"][wildcards.fit]["public"]),
        backbone=lambda wildcards: backbone_files(STUDY["fits"][wildcards.fit]),
        code=lambda wildcards: code(
            "fit_projection.py", f"dpstudy.features.{STUDY['fits'][wildcards.fit]['extractor']}"
        ),
    output:
        projection="results/fits/{fit}/projection.safetensors",
        card="results/fits/{fit}/card.json",
        points="results/fits/{fit}/points.safetensors",
    log:
        "results/logs/fit_projection/{fit}.log",
    benchmark:
        "results/benchmarks/fit_projection/{fit}.tsv"
    conda:
        "../../envs/study.yaml"
    threads: 1
    resources:
        mem_mb=peak(fit_memory),
        runtime=grown(120),
        gpu=lambda wildcards: gpu() if "backbone" in STUDY["fits"][wildcards.fit] else 0,
    params:
        library=lambda wildcards: library(
            "fit_projection.py", f"dpstudy.features.{STUDY['fits'][wildcards.fit]['extractor']}"
        ),
        options=lambda wildcards: STUDY["fits"][wildcards.fit],
        backbone=lambda wildcards: backbone_folder(STUDY["fits"][wildcards.fit]),
        drop=STUDY["dedup"]["drop"],
    script:
        "../scripts/fit_projection.py"
