# How well each cell does, and what the cells of the study add up to: results and privacy spent.


# From the scores that its models gave where they were trained: another metric or group trains nothing, and spends nothing.
rule score_cell:
    input:
        run=paths.RUN,
        scores=ask(targets.score_files, "cell"),
        code=code.metric_code(STUDY, "score_cell"),
    output:
        metrics=paths.METRICS,
    log:
        paths.log("score_cell", paths.CELL),
    benchmark:
        paths.benchmark("score_cell", paths.CELL)
    conda:
        ENVIRONMENT
    resources:
        mem_mb=peak(resources.scoring),
        runtime=grown(60),
    params:
        library=library_hash(code.metric_code(STUDY, "score_cell")),
        cell=paths.CELL,
        evaluation=fingerprints.asked_of_scores(STUDY),
    script:
        "../scripts/score_cell.py"


rule certify_cells:
    input:
        runs=ask(targets.files_of_dataset, "dataset", template=targets.facts_of_runs(STUDY)),
        ledgers=ask(targets.files_of_dataset, "dataset", template=paths.LEDGER),
        layouts=ask(fingerprints.layouts, "dataset"),
        data=ask(fingerprints.learned_manifests, "dataset"),
        code=code.script_code("certify_cells"),
    output:
        certificate=report(paths.CERTIFICATE, caption="../report/certificate.rst", category="Privacy"),
        replays=update(paths.REPLAYS),  # of entries that are as they were, it is kept
    log:
        paths.log("certify_cells", "{dataset}"),
    benchmark:
        paths.benchmark("certify_cells", "{dataset}")
    conda:
        ENVIRONMENT
    resources:
        mem_mb=peak(resources.certification),
        runtime=grown(60),
    params:
        library=code.script_hash("certify_cells"),
        cells=ask(fingerprints.certified_cells, "dataset"),
        noise=STUDY["noise"],
        replays=ask(fingerprints.replays_of, "dataset"),
    script:
        "../scripts/certify_cells.py"


rule summarise_cells:
    input:
        metrics=targets.cell_files(STUDY, paths.METRICS),
        certificates=targets.certificates(STUDY),
        data=fingerprints.data_of_all(STUDY),
        code=code.metric_code(STUDY, "summarise_cells"),
    output:
        csv=paths.SUMMARY_CSV,
        parquet=paths.SUMMARY,
    log:
        paths.log("summarise_cells", "summary"),
    benchmark:
        paths.benchmark("summarise_cells", "summary")
    conda:
        ENVIRONMENT
    resources:
        mem_mb=peak(resources.by_size(160, 8)),
        runtime=grown(30),
    params:
        library=library_hash(code.metric_code(STUDY, "summarise_cells")),
        cells=ask(fingerprints.summarised_cells),
    script:
        "../scripts/summarise_cells.py"


rule total_privacy:
    input:
        runs=targets.cell_files(STUDY, targets.facts_of_runs(STUDY)),
        ledgers=targets.cell_files(STUDY, paths.LEDGER),
        code=code.script_code("total_privacy"),
    output:
        report(paths.TOTAL, caption="../report/total.rst", category="Privacy"),
    log:
        paths.log("total_privacy", "total"),
    benchmark:
        paths.benchmark("total_privacy", "total")
    conda:
        ENVIRONMENT
    resources:
        mem_mb=peak(resources.total),
        runtime=grown(30),
    params:
        library=code.script_hash("total_privacy"),
        cells=targets.totalled_cells(STUDY),
        deltas=targets.deltas(STUDY),
        records=ask(sources.all_record_names),
        elsewhere=ask(sources.spent_elsewhere),
    script:
        "../scripts/total_privacy.py"
