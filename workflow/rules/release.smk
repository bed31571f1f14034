# What may be published of a cell: asked for by its folder, never made by itself. It needs that cell alone, whose ledger is
# certified anew: the certificates of a data set would have all other cells trained, which spends privacy.


rule write_bundle:
    input:
        metrics=f"results/cells/{CELL}/metrics.json",
        run=f"results/cells/{CELL}/run.json",
        ledger=f"results/cells/{CELL}/ledger.json",
        model=f"results/cells/{CELL}/model.safetensors",
        images="results/data/{dataset}/test/manifest.json",
        network=lambda wildcards: backbone_files(STUDY["features"][wildcards.features]),
        projection=lambda wildcards: fit_files(STUDY["features"][wildcards.features]),
        weights=lambda wildcards: weights_files(STUDY["features"][wildcards.features]),
        audit=lambda wildcards: [path for cell, path in audits().items() if cell == as_cell(wildcards).path],
        code=bundle_code,
    output:
        directory(f"results/release/{CELL}"),
    log:
        f"results/logs/write_bundle/{CELL}.log",
    benchmark:
        f"results/benchmarks/write_bundle/{CELL}.tsv"
    conda:
        "../../envs/study.yaml"
    threads: 1
    resources:
        mem_mb=peak(bundle_memory),
        runtime=grown(30),
    params:
        library=lambda wildcards: library_hash(bundle_code(wildcards)),
        cell=lambda wildcards: as_cell(wildcards).path,
        features=lambda wildcards: STUDY["features"][wildcards.features],
        backbone=lambda wildcards: backbone_folder(STUDY["features"][wildcards.features]),
        fit=lambda wildcards: fit_folder(STUDY["features"][wildcards.features]),
        crop=lambda wildcards: cropped(wildcards.dataset),
        unmatched=lambda wildcards: never_compared(wildcards),
        chosen=lambda wildcards: publics_where(is_chosen, wildcards),
        planted=lambda wildcards: publics_where(is_planted, wildcards),
        test_public=lambda wildcards: test_is_public(STUDY["datasets"][wildcards.dataset]),
        accept=STUDY["release"]["accept"],
        noise=STUDY["noise"],
        replay=lambda wildcards: replay_of(as_cell(wildcards)),
        unnamed=lambda wildcards: own_rows(STUDY["datasets"][wildcards.dataset]),
        stated=lambda wildcards: stated_of(as_cell(wildcards)) | {"manifests": []},  # what it learnt from may be gone
    script:
        "../scripts/write_bundle.py"
