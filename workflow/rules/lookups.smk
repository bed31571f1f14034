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


def other_splits(wildcards):
    """The shards of a user's other splits, where it is known whose an image is: no two persons may share one."""
    source, options = wildcards.source, SOURCES[wildcards.source]
    if source not in STUDY["datasets"] or not own_data(options["reader"]) or "subject_column" not in options:
        return []
    others = [split for split in split_names(options) if split != wildcards.split]
    return [path for split in others for path in parts(f"results/data/{source}/{split}", source)]


def options_of(wildcards):
    """The hyper-parameters of a cell, overrides applied."""
    return as_cell(wildcards).options(STUDY)


def as_cell(wildcards):
    """The cell that wildcards name."""
    return study_cells.Cell(wildcards.dataset, wildcards.features, wildcards.entry, wildcards.epsilon)


def planted_from(wildcards):
    """The private shards that a demonstration plants in the last shard of a public training split."""
    last = f"{SOURCES[wildcards.source]['shards'] - 1:05d}"
    if wildcards.source not in PLANTED or wildcards.split != "train" or wildcards.shard != last:
        return []
    plant = SOURCES[wildcards.source]["plant"]
    return with_manifest(f"results/data/{plant['dataset']}/{plant['split']}", plant["dataset"])


def reading_options(source):
    """What a reader is told of a data set: not what only others need, so that another delta reads nothing anew."""
    cut = SOURCES[source].get("beyond") == "truncate"
    others = ("delta", "not_accounted", "matched", "test_split", "sum_jobs", *(() if cut else ("positives", "beyond")))
    return {key: value for key, value in SOURCES[source].items() if key not in others}


def reader_modules(source):
    """The modules that read a data set, and what it is enlarged by."""
    options = SOURCES[source]
    readers = [options["reader"], *([options["extra"]["reader"]] if "extra" in options else [])]
    return [f"dpstudy.data.readers.{reader}" for reader in readers]


def source_table(wildcards):
    """The user's table of paths and labels, where there is one: an edit of it makes the shards anew."""
    options = SOURCES[wildcards.source]
    if "table" not in options:
        return []
    return [str(Path(study_locations.data_root(STUDY)) / options["location"] / options["table"])]


@functools.cache
def state_of_images(source):
    """What the user's own images look like from outside: a replaced, added or removed one makes the shards anew."""
    from dpstudy.data.state import state_of

    return state_of(SOURCES[source], Path(study_locations.data_root(STUDY)))


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


def extraction_inputs(wildcards):
    """The image shard with its manifest, and the network and the fit where the feature set has them."""
    folder = f"results/data/{wildcards.dataset}/{wildcards.split}"
    options = STUDY["features"][wildcards.features]
    fit = fit_folder(options)
    fit = [f"{fit}/{name}" for name in ("projection.safetensors", "card.json")] if fit else []
    shard = [f"{folder}/manifest.json", f"{folder}/part-{wildcards.shard}.parquet"]
    return [*shard, *backbone_files(options), *weights_files(options), *fit]


def extraction_options(wildcards):
    """What an extraction is told of a feature set: not what only ledgers say."""
    return {key: value for key, value in STUDY["features"][wildcards.features].items() if key != "trained_on"}


def extraction_gpu(wildcards):
    """One GPU, where there is one, for networks."""
    return gpu() if STUDY["features"][wildcards.features]["extractor"] in ("backbone", "timm") else 0


def extractor_module(wildcards):
    """The module of a feature set's extractor."""
    return f"dpstudy.features.{STUDY['features'][wildcards.features]['extractor']}"


def feature_files(dataset, features, split):
    """Manifest and shards of one split of a feature set: those of the images where it leaves them as they are."""
    if as_they_are(features):
        return with_manifest(f"results/data/{dataset}/{split}", dataset)
    return with_manifest(f"results/features/{dataset}/{features}/{split}", dataset)


def sum_jobs(dataset):
    """Among how many jobs a pass for sums over a split is shared; never more than it has shards."""
    options = STUDY["datasets"][dataset]
    return min(options.get("sum_jobs", 1), options["shards"])


def share_files(wildcards):
    """The manifest, and the shards of one job's share."""
    from dpstudy.features.batches import share_of

    manifest, *shards = feature_files(wildcards.dataset, wildcards.features, wildcards.split)
    return [manifest, *share_of(shards, int(wildcards.share), sum_jobs(wildcards.dataset))]


def all_shares(wildcards):
    """The sums of all jobs that share a pass."""
    return [f"{SUMS}/share-{share:03d}.safetensors".format(**wildcards) for share in range(sum_jobs(wildcards.dataset))]


def as_they_are(features):
    """How a feature set scales images that it leaves as they are; None where it extracts features."""
    options = STUDY["features"][features]
    return options["scaling"] if options["extractor"] == "images" else None


def training_splits(dataset):
    """The splits that cells are trained on: validation serves tuning alone, so that they train on it too."""
    return [split for split in splits_of(dataset) if split != "test"]


def statistics_of(cell, split):
    """The sums of a split that a cell solves from, or None where its method reads features."""
    options = cell.options(STUDY)
    rules = method_schema(options["method"])
    if rules["x-reads"] != "statistics":
        return None
    clip = "inf" if options["sanitise"] == "none" else repr(float(options["clipping_norm"]))
    per_class = all(options[key] == value for key, value in rules["x-per-class"].items())
    grams = "per-class" if per_class else "shared"
    return f"results/private/statistics/{cell.dataset}/{cell.features}/{split}/clip={clip}/{grams}.safetensors"


def learnt_from(wildcards, splits):
    """The private sums where the method solves from them (with the public facts of the split), else the features."""
    files = []
    for split in splits:
        statistics = statistics_of(as_cell(wildcards), split)
        if statistics is None:
            files += feature_files(wildcards.dataset, wildcards.features, split)
        else:
            features = feature_files(wildcards.dataset, wildcards.features, split)
            files += [*(features if scored_on_training() else features[:1]), statistics]
    return files


def scored_on_training():
    """Whether models are scored on their training records too."""
    return ON_TRAINING in STUDY["evaluation"]["metrics"]


def training_data(wildcards):
    """What a cell learns from. Where it pays for its tuning, that is done on the validation split, which it may then
    learn from in a second release."""
    options = options_of(wildcards)
    alone = pays(options) and not options["tuning"]["retrain"]
    return learnt_from(wildcards, ["train"] if alone else training_splits(wildcards.dataset))


def choosing_data(wildcards):
    """The validation split, for a cell that pays for its tuning; nothing for others."""
    return feature_files(wildcards.dataset, wildcards.features, "validation") if pays(options_of(wildcards)) else []


def training_manifests(wildcards):
    """The public facts of the splits that a cell learns from."""
    files = learnt_from(wildcards, training_splits(wildcards.dataset))
    return [path for path in files if os.path.basename(path) == "manifest.json"]


def public_points(wildcards):
    """Public points under the feature set's fit, for a cell that reads them; nothing for others."""
    folder = fit_folder(STUDY["features"][wildcards.features])
    return [f"{folder}/points.safetensors"] if reads_public(options_of(wildcards)) else []


def tuning_of(wildcards):
    """The search that chooses a cell's hyper-parameters; nothing where none are tuned, or its training chooses them."""
    cell, options = as_cell(wildcards), options_of(wildcards)
    return [f"results/tuning/{cell.path}/trials.parquet"] if "tuning" in options and not pays(options) else []


def cell_code(wildcards, script="train_cell.py"):
    """The file that lists what `method_code` finds for a cell."""
    options = options_of(wildcards)
    paid = f"-{options['tuning']['pay']}" if pays(options) else ""
    name = f"results/code/{os.path.splitext(script)[0]}/{options['method']}{paid}.sha256"
    files = method_code(options, script)
    try:
        return list_code(files, name)
    except OSError:  # results cannot be written to, which is said before anything runs
        return files


def method_code(options, script="train_cell.py"):
    """The script, a cell's method, what they import, and what a job runs beside them."""
    beside = ["dpstudy.study.rank"] if method_schema(options["method"]).get("x-per-seed") else []
    if pays(options):
        beside += [PAID_TUNING, f"{PAID_TUNING}_{options['tuning']['pay']}"]
    return code(script, module_name(options["method"]), *beside)


def cell_library(wildcards, script="train_cell.py"):
    """A hash of the same."""
    return library_hash(method_code(options_of(wildcards), script))


def audit_code(wildcards):
    """The list of an attack."""
    return cell_code(wildcards, "audit_cell.py")


def bundle_code(wildcards):
    """The script of a bundle, and what a bundle may be of: every kind of model, and the extractor."""
    models = [module for module, _ in MODELS.values()]
    extractor = STUDY["features"][wildcards.features]["extractor"]
    return code("write_bundle.py", *models, *extractor_modules(extractor))


def cropped(dataset):
    """Whether a data set's images were brought to their size by cutting out the middle."""
    options = STUDY["datasets"][dataset]
    return options.get("resize", "crop" if options["reader"] in CROPPING else "stretch") == "crop"


def tuning_code(wildcards):
    """The list of a search."""
    return cell_code(wildcards, "tune_entry.py")


TOLD = ("reader", "extra", "delta", "unit", "per_subject", "positives", "beyond")


def dataset_facts(dataset):
    """What a cell is told of its data set."""
    options = STUDY["datasets"][dataset]
    facts = {key: options[key] for key in TOLD if key in options}
    return facts | ({"not_accounted": caveats(options)} if caveats(options) else {})


def cell_files(name):
    """One file of every cell, in the study's order."""
    return [f"results/cells/{cell.path}/{name}" for cell in CELLS]


def files_of(dataset, name):
    """One file of every cell of a data set, in the study's order."""
    return [f"results/cells/{cell.path}/{name}" for cell in CELLS if cell.dataset == dataset]


def certificates():
    """What other accountants say of the cells, a file for each data set."""
    return [f"results/privacy/certificates/{dataset}.json" for dataset in dict.fromkeys(cell.dataset for cell in CELLS)]


def run_files(wildcards):
    """What the jobs of a cell's seeds made."""
    return [
        f"{RUN}/{name}".format(**wildcards, seed=seed)
        for name in ("run.json", "ledger.json", "curve.parquet", "model.safetensors")
        for seed in STUDY["seeds"]
    ]


def score_files(wildcards):
    """What the models of a cell gave on the test split: of all seeds, or of each where each is a job."""
    if wildcards.entry in entries_where(curve=True, per_seed=True):
        return [f"{RUN}/scores.parquet".format(**wildcards, seed=seed) for seed in STUDY["seeds"]]
    return [f"results/cells/{CELL}/scores.parquet".format(**wildcards)]


def kept_scores(path):
    """The same as an output, which goes as soon as metrics are made of it where a study does not keep it."""
    return path if STUDY["evaluation"]["keep_scores"] else temp(path)


def run_facts():
    """The file of a cell that tells its seeds: where scores are not kept, the one that is made of them before they go, so
    that whoever asks for what follows from it has them judged too."""
    return "run.json" if STUDY["evaluation"]["keep_scores"] else "metrics.json"


def asked_of_scores():
    """What scores are made to tell."""
    return {key: value for key, value in STUDY["evaluation"].items() if key != "keep_scores"}


@functools.cache
def evaluation_hash():
    """A hash of the same, and of the code that answers."""
    return evaluation_fingerprint(asked_of_scores(), library("score_cell.py"))


@functools.cache
def searched():
    """The entries whose search nobody pays for."""
    return unpaid_searches(STUDY)


def axes():
    """The study's names, in its order."""
    return {
        "datasets": list(STUDY["datasets"]),
        "features": list(STUDY["features"]),
        "entries": list(STUDY["methods"]),
        "epsilons": STUDY["epsilons"],
        "claimed": [
            name for name, entry in STUDY["methods"].items() if method_schema(entry["method"]).get("x-audited")
        ],
        "beyond": study_cells.beyond_target(STUDY),
        "searched": searched(),
        "private_tests": [name for name, dataset in STUDY["datasets"].items() if not test_is_public(dataset)],
    }


def cell_paths(name):
    """Cell -> one of its files."""
    return {cell.path: f"results/cells/{cell.path}/{name}" for cell in CELLS}


def published_files():
    """The papers' numbers and claims."""
    return [f"workflow/published/{name}.csv" for name in ("results", "hyperparameters", "claims", "architectures")]


def report_templates():
    """The page's templates."""
    return sorted(str(path) for path in Path("workflow/report").glob("*.html.j2"))


def shown_benchmarks():
    """What jobs took, for the report; None where a time tells how often a secretly repeated training ran."""
    repeated = any(cell.options(STUDY).get("tuning", {}).get("pay") == "repeats" for cell in CELLS)
    return None if repeated else "results/benchmarks"


def devices_of(wildcards):
    """How many processes share the training of a cell's seed."""
    return options_of(wildcards).get("devices", 1)
