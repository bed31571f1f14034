# Sums over the private records of a split, one pass for every epsilon, regulariser, seed and trial; where the data set
# says `sum_jobs`, the pass is shared among so many jobs. Nothing here is published.


rule sum_statistics:
    input:
        features=ask(sources.feature_files, "dataset", "features", "split"),
        kept=ask(publics.kept_for, "features"),
        code=code.script_code("sum_statistics"),
    output:
        paths.SUMS,
    log:
        paths.log("sum_statistics", paths.SUMS_NAME),
    benchmark:
        paths.benchmark("sum_statistics", paths.SUMS_NAME)
    wildcard_constraints:
        dataset=names.alternatives(sources.summed_at_once(STUDY)),
    conda:
        ENVIRONMENT
    resources:
        mem_mb=peak(data_resources.sums),
        runtime=grown(120),
        gpu=resources.gpus(),
    params:
        library=code.script_hash("sum_statistics"),
        folder=ask(sources.feature_folder, "dataset", "features", "split"),
        contributions=ask(sources.contributions, "dataset"),
        exact=STUDY["noise"] == "secure",
        shares=ask(sources.sum_jobs, "dataset"),
    script:
        "../scripts/sum_statistics.py"


use rule sum_statistics as sum_share with:
    input:
        features=ask(sources.share_files, "dataset", "features", "split", "share"),
        kept=ask(publics.kept_for, "features"),
        code=code.script_code("sum_statistics"),
    output:
        paths.SUMS_SHARE,
    log:
        paths.log("sum_share", f"{paths.SUMS_NAME}/{{share}}"),
    benchmark:
        paths.benchmark("sum_share", f"{paths.SUMS_NAME}/{{share}}")
    wildcard_constraints:
        dataset=names.alternatives(sources.summed_in_shares(STUDY)),


rule add_shares:
    input:
        shares=ask(sources.all_shares, "dataset", "features", "split", "clip", "grams"),
        code=code.script_code("add_shares"),
    output:
        paths.SUMS,
    log:
        paths.log("add_shares", paths.SUMS_NAME),
    benchmark:
        paths.benchmark("add_shares", paths.SUMS_NAME)
    wildcard_constraints:
        dataset=names.alternatives(sources.summed_in_shares(STUDY)),
    conda:
        ENVIRONMENT
    resources:
        mem_mb=peak(resources.by_largest(75, 6.3)),
        runtime=grown(30),
    params:
        library=code.script_hash("add_shares"),
    script:
        "../scripts/add_shares.py"
