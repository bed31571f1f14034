# Look-ups from the config, of cells and what is made of them: which files a job reads, and what it is told.


def options_of(wildcards):
    """The hyper-parameters of a cell, overrides applied."""
    return as_cell(wildcards).options(STUDY)


def as_cell(wildcards):
    """The cell that wildcards name."""
    return study_cells.Cell(wildcards.dataset, wildcards.features, wildcards.entry, wildcards.epsilon)


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
    by = f"-{STUDY['evaluation']['metrics'][0]}" if script == "tune_entry.py" else ""  # another study may use another
    name = f"results/code/{os.path.splitext(script)[0]}/{options['method']}{paid}{by}.sha256"
    files = method_code(options, script)
    try:
        return list_code(files, name)
    except OSError:  # results cannot be written to, which is said before anything runs
        return files


def method_code(options, script="train_cell.py"):
    """The script, a cell's method, what they import, and what a job runs beside them."""
    beside = ["dpstudy.jobs.rank"] if method_schema(options["method"]).get("x-per-seed") else []
    if pays(options) or script == "tune_entry.py":
        beside += metric_modules(STUDY["evaluation"]["metrics"][:1])  # which searches maximise
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
    return code("write_bundle.py", *models, *extractor_modules(extractor), *metric_code())


def tuning_code(wildcards):
    """The list of a search."""
    return cell_code(wildcards, "tune_entry.py")


def cell_files(name):
    """One file of every cell, in the study's order."""
    return [f"results/cells/{cell.path}/{name}" for cell in CELLS]


def files_of(dataset, name):
    """One file of every cell of a data set, in the study's order."""
    return [f"results/cells/{cell.path}/{name}" for cell in CELLS if cell.dataset == dataset]


def replayed_cells(dataset):
    """One cell of each entry of a data set and feature set that adds noise of its own to what it releases."""
    found = {}
    for cell in CELLS:
        options = cell.options(STUDY)
        if cell.dataset == dataset and options["sanitise"] == "full" and not options.get("shared_noise"):
            found.setdefault((cell.features, cell.entry), cell)
    return list(found.values())


def replay_of(cell):
    """What a replay of a cell's entry goes by (dpstudy.jobs.replays)."""
    return {
        "name": f"{cell.features}/{cell.entry}",
        "epsilon": cell.epsilon,
        "options": cell.options(STUDY),
        "dataset": dataset_facts(cell.dataset),
        "folder": os.path.dirname(feature_files(cell.dataset, cell.features, "train")[0]),
        "scaling": as_they_are(cell.features),
        "library": library_hash([*method_code(cell.options(STUDY)), *code("certify_cells.py")]),
    }


def layouts(wildcards):
    """The manifests that say what records look like to the entries that are replayed."""
    cells = replayed_cells(wildcards.dataset)
    return list(dict.fromkeys(feature_files(cell.dataset, cell.features, "train")[0] for cell in cells))


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
    return evaluation_fingerprint(asked_of_scores(), library("score_cell.py", *metric_code()))


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
    names = ("results", "hyperparameters", "claims", "architectures")
    return [relative(WORKFLOW / "published" / f"{name}.csv") for name in names]


def report_templates():
    """The page's templates."""
    return sorted(relative(path) for path in (WORKFLOW / "report").glob("*.html.j2"))


def shown_benchmarks():
    """What jobs took, for the report; None where a time tells how often a secretly repeated training ran."""
    repeated = any(cell.options(STUDY).get("tuning", {}).get("pay") == "repeats" for cell in CELLS)
    return None if repeated else "results/benchmarks"


def devices_of(wildcards):
    """How many processes share the training of a cell's seed."""
    return options_of(wildcards).get("devices", 1)


def look_at_cells():
    """Refuse to build anything on cells whose files do not belong together; what is made anew in this run is not looked
    at."""
    jobs = list(workflow.dag.needrun_jobs())
    made = {path for job in jobs for path in job.output}
    read = {path for job in jobs for path in job.input} - made
    folders = {os.path.dirname(path) for path in read}
    try:
        seen = BoundBefore(Binding(PaidHashes(Spending(BOOK))))
        faults = []
        for cell in CELLS:
            folder = f"results/cells/{cell.path}"
            if folder in folders and f"{folder}/run.json" not in made and not workflow.touch:
                faults += seen.faults(cell.path, metrics=f"{folder}/metrics.json" not in made)
        seen.keep()
        refuse([f"nothing was run: {told}" for told in faults])
    except StudyError as error:
        raise WorkflowError(f"dpstudy: {error}")
