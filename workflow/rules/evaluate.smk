# How well each cell does, and what the cells of the study add up to: results and privacy spent.


# From the scores that its models gave where they were trained: another metric or group trains nothing, and spends nothing.
rule score_cell:
    input:
        run=f"results/cells/{CELL}/run.json",
        scores=score_files,
        code=code("score_cell.py", *metric_code()),
    output:
        metrics=f"results/cells/{CELL}/metrics.json",
    log:
        f"results/logs/score_cell/{CELL}.log",
    benchmark:
        f"results/benchmarks/score_cell/{CELL}.tsv"
    conda:
        "../../envs/study.yaml"
    threads: 1
    resources:
        mem_mb=peak(scoring_memory),
        runtime=grown(60),
    params:
        evaluation=asked_of_scores(),
        library=library("score_cell.py", *metric_code()),
    script:
        "../scripts/score_cell.py"


rule certify_cells:
    input:
        runs=lambda wildcards: files_of(wildcards.dataset, run_facts()),
        ledgers=lambda wildcards: files_of(wildcards.dataset, "ledger.json"),
        layouts=layouts,
        data=lambda wildcards: sorted({path for facts in all_stated(wildcards.dataset) for path in facts["manifests"]}),
        code=code("certify_cells.py"),
    output:
        certificate="results/privacy/certificates/{dataset}.json",
        replays=update("results/privacy/replays/{dataset}.json"),  # of entries that are as they were, it is kept
    log:
        "results/logs/certify_cells/{dataset}.log",
    benchmark:
        "results/benchmarks/certify_cells/{dataset}.tsv"
    conda:
        "../../envs/study.yaml"
    threads: 1
    resources:
        mem_mb=peak(certification_memory),
        runtime=grown(60),
    params:
        library=library("certify_cells.py"),
        cells=lambda wildcards: [cell.path for cell in CELLS if cell.dataset == wildcards.dataset],
        stated=lambda wildcards: all_stated(wildcards.dataset),
        unnamed=lambda wildcards: own_rows(STUDY["datasets"][wildcards.dataset]),
        noise=STUDY["noise"],
        replays=lambda wildcards: [replay_of(cell) for cell in replayed_cells(wildcards.dataset)],
    script:
        "../scripts/certify_cells.py"


rule summarise_cells:
    input:
        metrics=cell_files("metrics.json"),
        certificates=certificates(),
        data=data_of_all(),
        code=code("summarise_cells.py", *metric_code()),
    output:
        csv="results/summary.csv",
        parquet="results/summary.parquet",
    log:
        "results/logs/summarise_cells/summary.log",
    benchmark:
        "results/benchmarks/summarise_cells/summary.tsv"
    conda:
        "../../envs/study.yaml"
    threads: 1
    resources:
        mem_mb=peak(memory(140, 8)),
        runtime=grown(30),
    params:
        library=library("summarise_cells.py", *metric_code()),
        cells=[[cell.dataset, cell.features, cell.entry, cell.epsilon] for cell in CELLS],
        expected=lambda wildcards: expected_makers(),
    script:
        "../scripts/summarise_cells.py"


rule total_privacy:
    input:
        runs=cell_files(run_facts()),
        ledgers=cell_files("ledger.json"),
        code=code("total_privacy.py"),
    output:
        "results/privacy/total.json",
    log:
        "results/logs/total_privacy/total.log",
    benchmark:
        "results/benchmarks/total_privacy/total.tsv"
    conda:
        "../../envs/study.yaml"
    threads: 1
    resources:
        mem_mb=peak(total_memory),
        runtime=grown(30),
    params:
        library=library("total_privacy.py"),
        datasets=[cell.dataset for cell in CELLS],
        deltas={name: dataset["delta"] for name, dataset in STUDY["datasets"].items()},
    script:
        "../scripts/total_privacy.py"
