# Cells: one method entry at one epsilon on one feature set of one data set, for all seeds.


rule train_closed_form:
    input:
        train=ask(training.training_files, "cell"),
        test=ask(training.test_files, "cell"),
        kept=ask(training.kept_files, "cell"),
        start=ask(training.starting_files, "cell"),
        public=ask(training.public_points, "cell"),
        tuning=ask(training.trials_of, "cell"),
        choosing=ask(training.choosing_files, "cell"),
        code=ask(code.cell_code, "cell"),
    output:
        run=paths.RUN,
        scores=kept_scores(paths.SCORES),
        ledger=paths.LEDGER,
        model=paths.MODEL,
    log:
        paths.log("train_closed_form", paths.CELL),
    benchmark:
        paths.benchmark("train_closed_form", paths.CELL)
    wildcard_constraints:
        entry=names.alternatives(training.entries_where(STUDY, curve=False)),
    conda:
        ENVIRONMENT
    resources:
        mem_mb=peak(resources.with_scores(resources.solving)),
        runtime=grown(120),
    params:
        request=ask(training.training_request_of_all, "cell"),
        inputs=ask(training.inputs_of, "cell"),
        spending=ask(training.spending, "cell"),
    script:
        "../scripts/train_cell.py"


use rule train_closed_form as train_stepped with:
    output:
        run=paths.RUN,
        scores=kept_scores(paths.SCORES),
        ledger=paths.LEDGER,
        model=paths.MODEL,
        curve=paths.CURVE,
    log:
        paths.log("train_stepped", paths.CELL),
    benchmark:
        paths.benchmark("train_stepped", paths.CELL)
    wildcard_constraints:
        entry=names.alternatives(training.entries_where(STUDY, curve=True, per_seed=False, audited=False)),
    resources:
        mem_mb=peak(resources.with_scores(resources.stepped)),
        runtime=grown(240),
        gpu=resources.gpus(),


# Entries whose guarantee is claimed and not proved: no cell without an attack on the claim.
use rule train_stepped as train_claimed with:
    output:
        run=paths.RUN,
        scores=kept_scores(paths.SCORES),
        ledger=paths.LEDGER,
        model=paths.MODEL,
        curve=paths.CURVE,
        audit=paths.AUDIT,
    log:
        paths.log("train_claimed", paths.CELL),
    benchmark:
        paths.benchmark("train_claimed", paths.CELL)
    wildcard_constraints:
        entry=names.alternatives(training.entries_where(STUDY, curve=True, audited=True)),
    resources:
        mem_mb=peak(resources.claimed),
        runtime=grown(240),
        gpu=resources.gpus(),


# Deep entries: each seed is a job, which goes on from its last checkpoint where it was killed, and a new seed leaves the
# others alone.
use rule train_closed_form as train_seed with:
    output:
        run=paths.SEED_RUN,
        scores=paths.SEED_SCORES,
        ledger=paths.SEED_LEDGER,
        model=paths.SEED_MODEL,
        curve=paths.SEED_CURVE,
    log:
        paths.log("train_seed", f"{paths.CELL}/seed={{seed}}"),
    benchmark:
        paths.benchmark("train_seed", f"{paths.CELL}/seed={{seed}}")
    wildcard_constraints:
        entry=names.alternatives(training.entries_where(STUDY, curve=True, per_seed=True)),
    threads: ask(training.devices_of, "cell")
    resources:
        mem_mb=peak(resources.seed),
        runtime=grown(1440),
        gpu=ask(resources.seed_gpus, "cell"),
    params:
        request=ask(training.training_request_of_one, "cell", "seed"),
        inputs=ask(training.inputs_of, "cell"),
        spending=ask(training.spending, "cell"),


rule gather_cell:
    input:
        runs=ask(targets.seed_files, "cell"),
        code=code.script_code("gather_cell"),
    output:
        run=paths.RUN,
        ledger=paths.LEDGER,
        model=paths.MODEL,
        curve=paths.CURVE,
    log:
        paths.log("gather_cell", paths.CELL),
    benchmark:
        paths.benchmark("gather_cell", paths.CELL)
    wildcard_constraints:
        entry=names.alternatives(training.entries_where(STUDY, curve=True, per_seed=True)),
    conda:
        ENVIRONMENT
    resources:
        mem_mb=peak(resources.by_size(120, 3)),
        runtime=grown(10),
    params:
        library=code.script_hash("gather_cell"),
        cell=paths.CELL,
        folders=ask(targets.seed_folders, "cell"),
        fingerprint=ask(fingerprints.whole_fingerprint, "cell"),
        seeds=STUDY["seeds"],
    script:
        "../scripts/gather_cell.py"
