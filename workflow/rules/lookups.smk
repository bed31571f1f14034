# Look-ups from the config: which files a job reads, and what it is told.


def splits_of(source):
    """The splits that a data set is cut into."""
    return split_names(SOURCES[source], private=source in STUDY["datasets"])


def parts(folder, source):
    """The shards of one split of a data set, below a folder."""
    return [f"{folder}/part-{shard:05d}.parquet" for shard in range(SOURCES[source]["shards"])]


def with_manifest(folder, source):
    """The manifest and the shards of one split."""
    return [f"{folder}/manifest.json", *parts(folder, source)]


def options_of(wildcards):
    """The hyper-parameters of a cell, overrides applied."""
    return as_cell(wildcards).options(STUDY)


def as_cell(wildcards):
    """The cell that wildcards name."""
    return study_cells.Cell(wildcards.dataset, wildcards.features, wildcards.entry, wildcards.epsilon)


def public_of(features):
    """The public set that a feature set was trained on, or None."""
    backbone = STUDY["features"][features].get("backbone")
    return STUDY["backbones"][backbone]["public"] if backbone else None


def kept_for(features):
    """What de-duplication kept, where private records that match the public set are dropped; else nothing."""
    public = public_of(features)
    return [f"results/dedup/{public}/kept.parquet"] if public and STUDY["dedup"]["drop"] == "private" else []


def not_accounted(features):
    """What a cell on these features does outside its ledger."""
    public = public_of(features)
    sentences = []
    if public and STUDY["dedup"]["drop"] == "public":
        sentences.append(
            f"The network that made the features was trained on images of {public!r} that were chosen by comparing "
            "them with private records (de-duplication with drop: public)."
        )
    plant = STUDY["public"][public].get("plant") if public else None
    if plant and plant["split"] != "test":
        sentences.append(
            f"Copies of private records were planted in {public!r} for demonstration: the network that made the "
            "features saw them, and which records were dropped depends on them."
        )
    return sentences


def planted_from(wildcards):
    """The private shards that a demonstration plants in the last shard of a public training split."""
    last = f"{SOURCES[wildcards.source]['shards'] - 1:05d}"
    if wildcards.source not in PLANTED or wildcards.split != "train" or wildcards.shard != last:
        return []
    plant = SOURCES[wildcards.source]["plant"]
    return with_manifest(f"results/data/{plant['dataset']}/{plant['split']}", plant["dataset"])


def reading_options(source):
    """What a reader is told of a data set: not what only cells need, so that another delta reads nothing anew."""
    return {key: value for key, value in SOURCES[source].items() if key not in ("delta", "positives")}


def source_table(wildcards):
    """The user's table of paths and labels, where there is one: an edit of it makes the shards anew."""
    options = SOURCES[wildcards.source]
    if "table" not in options:
        return []
    return [str(Path(study_config.data_root(STUDY)) / options["location"] / options["table"])]


def with_images(dataset):
    """Whether a data set brings images."""
    return STUDY["datasets"][dataset]["reader"] != "labels"


def all_splits(sources):
    """Manifests and shards of every split of these data sets."""
    return [
        path
        for source in sources
        for split in splits_of(source)
        for path in with_manifest(f"results/data/{source}/{split}", source)
    ]


def kept_for_training(wildcards):
    """What de-duplication kept of the public set; nothing where it drops private records: then the network does not
    depend on them at all."""
    if STUDY["dedup"]["drop"] == "private":
        return []
    return [f"results/dedup/{STUDY['backbones'][wildcards.backbone]['public']}/kept.parquet"]


def backbone_folder(wildcards):
    """Where the backbone of a feature set lies; None for an extractor without one."""
    backbone = STUDY["features"][wildcards.features].get("backbone")
    return f"results/backbones/{backbone}" if backbone else None


def extraction_inputs(wildcards):
    """The image shard with its manifest, and the backbone where the extractor has one."""
    folder = f"results/data/{wildcards.dataset}/{wildcards.split}"
    network = backbone_folder(wildcards)
    network = [f"{network}/{name}" for name in ("model.safetensors", "card.json")] if network else []
    return [f"{folder}/manifest.json", f"{folder}/part-{wildcards.shard}.parquet", *network]


def extractor_module(wildcards):
    """The module of a feature set's extractor."""
    return f"dpstudy.features.{STUDY['features'][wildcards.features]['extractor']}"


def feature_files(dataset, features, split):
    """Manifest and shards of one split of a feature set."""
    return with_manifest(f"results/features/{dataset}/{features}/{split}", dataset)


def statistics_of(cell):
    """The sums that a cell solves from, or None where its method reads features."""
    options = cell.options(STUDY)
    rules = method_schema(options["method"])
    if rules["x-reads"] != "statistics":
        return None
    clip = "inf" if options["sanitise"] == "none" else repr(float(options["clipping_norm"]))
    per_class = all(options[key] == value for key, value in rules["x-per-class"].items())
    grams = "per-class" if per_class else "shared"
    return f"results/private/statistics/{cell.dataset}/{cell.features}/clip={clip}/{grams}.safetensors"


def training_data(wildcards):
    """The private sums where the method solves from them (with the public facts of the split), else the features."""
    statistics = statistics_of(as_cell(wildcards))
    if statistics is None:
        return feature_files(wildcards.dataset, wildcards.features, "train")
    return [f"results/features/{wildcards.dataset}/{wildcards.features}/train/manifest.json", statistics]


def cell_code(wildcards):
    """The script, the method, and all they import."""
    return code("train_cell.py", f"dpstudy.methods.{STUDY['methods'][wildcards.entry]['method']}")


def dataset_facts(dataset):
    """What a cell is told of its data set."""
    return {key: STUDY["datasets"][dataset][key] for key in ("reader", "delta", "unit", "positives")}


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


def axes():
    """The study's names, in its order."""
    return {
        "datasets": list(STUDY["datasets"]),
        "features": list(STUDY["features"]),
        "entries": list(STUDY["methods"]),
        "epsilons": STUDY["epsilons"],
    }


def ledger_paths():
    """Cell -> its ledger."""
    return {cell.path: f"results/cells/{cell.path}/ledger.json" for cell in CELLS}


def report_template():
    """The page's templates."""
    return sorted(str(path) for path in Path("workflow/report").glob("*.j2"))
