# The search for one cell's hyper-parameters: trained on the train split, scored on the validation split. It never sees
# the test split. A journal beside the trials lets an interrupted search continue.


rule tune_entry:
    input:
        train=ask(training.searching_files, "cell"),
        validation=ask(training.validation_files, "cell"),
        kept=ask(training.kept_files, "cell"),
        start=ask(training.starting_files, "cell"),
        public=ask(training.public_points, "cell"),
        code=ask(code.searching_code, "cell"),
    output:
        trials=paths.TRIALS,
    log:
        paths.log("tune_entry", paths.CELL),
    benchmark:
        paths.benchmark("tune_entry", paths.CELL)
    conda:
        ENVIRONMENT
    resources:
        mem_mb=peak(resources.tuning),
        runtime=grown(1440),
        gpu=ask(resources.tuning_gpus, "cell"),
    params:
        request=ask(training.request_of_one_seed, "cell", script="tune_entry"),
        inputs=ask(training.search_inputs, "cell"),
    script:
        "../scripts/tune_entry.py"
