# What the cells of the study add up to: results and privacy spent.


def cell_files(name):
    """One file of every cell, in the study's order."""
    return [f"results/cells/{cell.path}/{name}" for cell in CELLS]


def expected_makers():
    """The hashes that each cell must bear: a cell that another config or library made is never tabled."""
    expected = {}
    for cell in CELLS:
        options = cell.options(STUDY)
        expected[cell.path] = {
            "config": cell_fingerprint(
                options,
                dataset_facts(cell.dataset),
                STUDY["seeds"],
                STUDY["noise"],
                STUDY["evaluation"]["metrics"],
            ),
            "library": library_hash(code("train_cell.py", f"dpstudy.methods.{options['method']}")),
        }
    return expected


rule summarise_cells:
    input:
        metrics=cell_files("metrics.json"),
        code=code("summarise_cells.py"),
    output:
        csv="results/summary.csv",
        parquet="results/summary.parquet",
    params:
        cells=[[cell.dataset, cell.features, cell.entry, cell.epsilon] for cell in CELLS],
        expected=lambda wildcards: expected_makers(),
    log:
        "results/logs/summarise_cells/summary.log",
    benchmark:
        "results/benchmarks/summarise_cells/summary.tsv"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=30,
    conda:
        "../../envs/study.yaml"
    script:
        "../scripts/summarise_cells.py"


rule total_privacy:
    input:
        metrics=cell_files("metrics.json"),
        ledgers=cell_files("ledger.json"),
        code=code("total_privacy.py"),
    output:
        "results/privacy/total.json",
    params:
        datasets=[cell.dataset for cell in CELLS],
        deltas={name: dataset["delta"] for name, dataset in STUDY["datasets"].items()},
    log:
        "results/logs/total_privacy/total.log",
    benchmark:
        "results/benchmarks/total_privacy/total.tsv"
    threads: 1
    resources:
        mem_mb=1500,
        runtime=30,
    conda:
        "../../envs/study.yaml"
    script:
        "../scripts/total_privacy.py"
