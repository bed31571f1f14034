# Attacks on what methods release: a lower bound on epsilon for each cell that the study names, or that is asked for.


rule audit_cell:
    input:
        train=training_manifests,
        tuning=tuning_of,
        code=audit_code,
    output:
        f"results/audit/{CELL}/audit.json",
    log:
        f"results/logs/audit_cell/{CELL}.log",
    benchmark:
        f"results/benchmarks/audit_cell/{CELL}.tsv"
    wildcard_constraints:
        entry=alternatives(entries_where(curve=True, audited=False) + entries_where(curve=False)),
        epsilon=alternatives(epsilon for epsilon in STUDY["epsilons"] if epsilon != "inf"),
    conda:
        "../../envs/study.yaml"
    threads: 1
    resources:
        mem_mb=peak(audit_memory),
        runtime=grown(240),
    params:
        options=options_of,
        scaling=lambda wildcards: as_they_are(wildcards.features),
        library=lambda wildcards: cell_library(wildcards, "audit_cell.py"),
        dataset=lambda wildcards: dataset_facts(wildcards.dataset),
        noise=STUDY["noise"],
        audit={key: STUDY["audit"][key] for key in ("runs", "canaries", "confidence", "sees")},
    script:
        "../scripts/audit_cell.py"
