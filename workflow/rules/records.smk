# What no record says the making of is made anew: Snakemake would take it for current, whatever the config says.


def lasting_files():
    """What a study makes that another config or library would make otherwise."""
    pairs = dict.fromkeys((cell.dataset, cell.features) for cell in CELLS if not as_they_are(cell.features))
    found = {
        "private/statistics": "*.safetensors",
        "tuning": "trials.parquet",
        "runs": "run.json",
        "audit": "*.json",
        "claims": "*.json",
        "tables": "all.*",
        "release": "eps=*",
    }
    return [
        *all_splits(SOURCES),
        *(path for source in SOURCES for path in descriptions(source)),
        *(f"results/dedup/{public}/report.json" for public in STUDY["public"] if is_matched(public)),
        *(path for name in STUDY["backbones"] for path in backbone_files({"backbone": name})),
        *(path for name in STUDY["fits"] for path in fit_files({"fit": name})),
        *(path for pair in pairs for split in splits_of(pair[0]) for path in feature_files(*pair, split)),
        *(str(path) for folder, name in found.items() for path in Path("results", folder).rglob(name)),
        *cell_files("run.json"),
        *cell_files("metrics.json"),
        *final_targets(),
    ]


if workflow.is_main_process:
    keep_records()
    if lost := outdate(unrecorded(lasting_files())):
        logger.warning(
            f"dpstudy: no record says what made {lost[0]}"
            + (f" and {len(lost) - 1:,} other files" if len(lost) > 1 else "")
            + ": made anew where it is needed (docs/faq.md)"
        )
elif workflow.remote_exec:
    record_own_jobs()
