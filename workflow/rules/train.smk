# Cells: one method entry at one epsilon on one feature set of one data set, for all seeds.


rule train_closed_form:
    input:
        train=training_data,
        test=lambda wildcards: feature_files(wildcards.dataset, wildcards.features, "test"),
        kept=lambda wildcards: kept_for(wildcards.features, start_of(wildcards)),
        start=start_files,
        public=public_points,
        tuning=tuning_of,
        choosing=choosing_data,
        code=cell_code,
    output:
        run=f"results/cells/{CELL}/run.json",
        scores=kept_scores(f"results/cells/{CELL}/scores.parquet"),
        ledger=f"results/cells/{CELL}/ledger.json",
        model=f"results/cells/{CELL}/model.safetensors",
    log:
        f"results/logs/train_closed_form/{CELL}.log",
    benchmark:
        f"results/benchmarks/train_closed_form/{CELL}.tsv"
    wildcard_constraints:
        entry=alternatives(entries_where(curve=False)),
    conda:
        "../../envs/study.yaml"
    threads: 1
    resources:
        mem_mb=peak(with_scores(solving_memory)),
        runtime=grown(120),
    params:
        options=options_of,
        scaling=lambda wildcards: as_they_are(wildcards.features),
        library=cell_library,
        dataset=lambda wildcards: dataset_facts(wildcards.dataset),
        origin=origin_of,
        seeds=STUDY["seeds"],
        noise=STUDY["noise"],
        on_training=scored_on_training(),
        not_accounted=not_accounted,
    script:
        "../scripts/train_cell.py"


use rule train_closed_form as train_stepped with:
    output:
        run=f"results/cells/{CELL}/run.json",
        scores=kept_scores(f"results/cells/{CELL}/scores.parquet"),
        ledger=f"results/cells/{CELL}/ledger.json",
        model=f"results/cells/{CELL}/model.safetensors",
        curve=f"results/cells/{CELL}/curve.parquet",
    log:
        f"results/logs/train_stepped/{CELL}.log",
    benchmark:
        f"results/benchmarks/train_stepped/{CELL}.tsv"
    wildcard_constraints:
        entry=alternatives(entries_where(curve=True, per_seed=False, audited=False)),
    resources:
        mem_mb=peak(with_scores(stepped_memory)),
        runtime=grown(240),
        gpu=gpu(),


# Entries whose guarantee is claimed and not proved: no cell without an attack on the claim.
use rule train_stepped as train_claimed with:
    output:
        run=f"results/cells/{CELL}/run.json",
        scores=kept_scores(f"results/cells/{CELL}/scores.parquet"),
        ledger=f"results/cells/{CELL}/ledger.json",
        model=f"results/cells/{CELL}/model.safetensors",
        curve=f"results/cells/{CELL}/curve.parquet",
        audit=f"results/audit/{CELL}/audit.json",
    log:
        f"results/logs/train_claimed/{CELL}.log",
    benchmark:
        f"results/benchmarks/train_claimed/{CELL}.tsv"
    wildcard_constraints:
        entry=alternatives(entries_where(curve=True, audited=True)),
    resources:
        mem_mb=peak(with_scores(memory(with_gpu(1100), 4))),
        runtime=grown(240),
        gpu=gpu(),


# Deep entries: each seed is a job, which goes on from its last checkpoint where it was killed, and a new seed leaves the
# others alone.
use rule train_closed_form as train_seed with:
    output:
        run=f"{RUN}/run.json",
        scores=f"{RUN}/scores.parquet",
        ledger=f"{RUN}/ledger.json",
        model=f"{RUN}/model.safetensors",
        curve=f"{RUN}/curve.parquet",
    log:
        f"results/logs/train_seed/{CELL}/seed={{seed}}.log",
    benchmark:
        f"results/benchmarks/train_seed/{CELL}/seed={{seed}}.tsv"
    wildcard_constraints:
        entry=alternatives(entries_where(curve=True, per_seed=True)),
    threads: devices_of
    resources:
        mem_mb=peak(lambda wildcards, input: devices_of(wildcards) * with_scores(stepped_memory, 1)(wildcards, input)),
        runtime=grown(1440),
        gpu=lambda wildcards: devices_of(wildcards) * gpu(),
    params:
        options=options_of,
        scaling=lambda wildcards: as_they_are(wildcards.features),
        library=cell_library,
        dataset=lambda wildcards: dataset_facts(wildcards.dataset),
        origin=origin_of,
        seeds=lambda wildcards: [int(wildcards.seed)],
        noise=STUDY["noise"],
        on_training=scored_on_training(),
        not_accounted=not_accounted,
        checkpoint=lambda wildcards: f"{RUN}/checkpoint.safetensors".format(**wildcards),


rule gather_cell:
    input:
        runs=run_files,
        code=code("gather_cell.py"),
    output:
        run=f"results/cells/{CELL}/run.json",
        ledger=f"results/cells/{CELL}/ledger.json",
        model=f"results/cells/{CELL}/model.safetensors",
        curve=f"results/cells/{CELL}/curve.parquet",
    log:
        f"results/logs/gather_cell/{CELL}.log",
    benchmark:
        f"results/benchmarks/gather_cell/{CELL}.tsv"
    wildcard_constraints:
        entry=alternatives(entries_where(curve=True, per_seed=True)),
    conda:
        "../../envs/study.yaml"
    threads: 1
    resources:
        mem_mb=peak(memory(120, 3)),
        runtime=grown(10),
    params:
        library=library("gather_cell.py"),
        fingerprint=lambda wildcards: whole_fingerprint(as_cell(wildcards)),
        seeds=STUDY["seeds"],
    script:
        "../scripts/gather_cell.py"
