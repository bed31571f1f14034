# Projections fitted on public data.


rule fit_projection:
    input:
        public=ask(publics.images_of_fit, "fit"),
        kept=ask(publics.kept_for_fit, "fit"),
        backbone=ask(publics.backbone_files_of_fit, "fit"),
        code=ask(code.projection_code, "fit"),
    output:
        projection=paths.PROJECTION,
        card=paths.FIT_CARD,
        points=paths.FIT_POINTS,
    log:
        paths.log("fit_projection", "{fit}"),
    benchmark:
        paths.benchmark("fit_projection", "{fit}")
    conda:
        ENVIRONMENT
    resources:
        mem_mb=peak(data_resources.projection),
        runtime=grown(120),
        gpu=ask(data_resources.projection_gpus, "fit"),
    params:
        library=hash_of(code.projection_code, "fit"),
        options=ask(publics.fit_options, "fit"),
        folder=ask(publics.public_folder, "fit", of="fits"),
        backbone=ask(publics.backbone_folder_of_fit, "fit"),
        where=ask(sources.place_of_data),
        drop=STUDY["dedup"]["drop"],
    script:
        "../scripts/fit_projection.py"
