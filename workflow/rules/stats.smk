# Sums over private records, one pass for every epsilon, regulariser and seed. Private: nothing here is published.


def feature_files(dataset, features, split):
    """Manifest and shards of one split of a feature set."""
    return with_manifest(f"results/features/{dataset}/{features}/{split}", dataset)


def statistics_of(cell):
    """The sums that a cell solves from, or None where its method reads features."""
    options = cell.options(STUDY)
    rules = method_schema(options["method"])
    if rules["x-reads"] != "statistics":
        return None
    clip = "inf" if options["sanitise"] == "none" else f"{options['clipping_norm']:g}"
    per_class = all(options[key] == value for key, value in rules["x-per-class"].items())
    grams = "per-class" if per_class else "shared"
    return f"results/private/statistics/{cell.dataset}/{cell.features}/clip={clip}/{grams}.safetensors"


rule sum_statistics:
    input:
        features=lambda wildcards: feature_files(wildcards.dataset, wildcards.features, "train"),
        kept=lambda wildcards: kept_for(wildcards.features),
        code=code("sum_statistics.py"),
    output:
        "results/private/statistics/{dataset}/{features}/clip={clip}/{grams}.safetensors",
    params:
        positives=lambda wildcards: STUDY["datasets"][wildcards.dataset]["positives"],
    log:
        "results/logs/sum_statistics/{dataset}/{features}/clip={clip}/{grams}.log",
    benchmark:
        "results/benchmarks/sum_statistics/{dataset}/{features}/clip={clip}/{grams}.tsv"
    threads: 1
    resources:
        mem_mb=memory(2000, 2),
        runtime=120,
    conda:
        "../../envs/study.yaml"
    script:
        "../scripts/sum_statistics.py"
