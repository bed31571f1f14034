# What may be published of a cell: asked for by its folder, never made by itself. It needs that cell alone, whose ledger is
# certified anew: the certificates of a data set would have all other cells trained, which spends privacy.


rule write_bundle:
    input:
        metrics=paths.METRICS,
        run=paths.RUN,
        ledger=paths.LEDGER,
        model=paths.MODEL,
        images=ask(releases.test_manifest, "dataset"),
        features=ask(releases.feature_files, "features"),
        audit=ask(targets.audit_of, "cell"),
        code=ask(code.bundle_code, "features"),
    output:
        directory(paths.BUNDLE),
    log:
        paths.log("write_bundle", paths.CELL),
    benchmark:
        paths.benchmark("write_bundle", paths.CELL)
    conda:
        ENVIRONMENT
    resources:
        mem_mb=peak(resources.bundle),
        runtime=grown(30),
    params:
        library=hash_of(code.bundle_code, "features"),
        cell=ask(releases.certified_cell, "cell"),
        facts=ask(releases.facts, "cell"),
        accept=STUDY["release"]["accept"],
        noise=STUDY["noise"],
        replay=ask(fingerprints.replay_of, "cell"),
        replays=paths.REPLAYS,  # no input of the rule: all other cells would have to be there
    script:
        "../scripts/write_bundle.py"
