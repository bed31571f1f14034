# Look-ups from the config, of data sets and features: which files a job reads, and what it is told.


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


def planted_from(wildcards):
    """The private shards that a demonstration plants in the last shard of a public training split."""
    last = f"{SOURCES[wildcards.source]['shards'] - 1:05d}"
    if wildcards.source not in PLANTED or wildcards.split != "train" or wildcards.shard != last:
        return []
    plant = SOURCES[wildcards.source]["plant"]
    return with_manifest(f"results/data/{plant['dataset']}/{plant['split']}", plant["dataset"])


def reading_options(source):
    """What a reader is told of a data set: not what only others need, so that another delta reads nothing anew."""
    options = SOURCES[source]
    others = ["delta", "not_accounted", "matched", "sum_jobs"]
    others += [] if options.get("beyond") == "truncate" else ["positives", "beyond"]
    # whose the test records are says how records are named where it says that they are the user's own at all
    named = options.get("test_split") == "private" and not own_data(options["reader"]) and not numbered(source)
    others += [] if named else ["test_split"]
    return {key: value for key, value in options.items() if key not in others}


@functools.cache
def numbered(source):
    """Whether a user's own records keep row numbers, by which the book of secure noise knows them."""
    if source not in STUDY["datasets"] or not own_reader(STUDY["datasets"][source]):
        return False
    try:
        return Spending(BOOK).numbered(source, study_locations.records_of(STUDY, source, links=False))
    except StudyError as error:
        raise WorkflowError(f"dpstudy: {error}")


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


def cropped(dataset):
    """Whether a data set's images were brought to their size by cutting out the middle."""
    options = STUDY["datasets"][dataset]
    return options.get("resize", "crop" if options["reader"] in CROPPING else "stretch") == "crop"


TOLD = ("reader", "extra", "delta", "unit", "per_subject", "positives", "beyond")


def dataset_facts(dataset):
    """What a cell is told of its data set."""
    options = STUDY["datasets"][dataset]
    facts = {key: options[key] for key in TOLD if key in options}
    sentences = caveats(options, numbered(dataset))
    return facts | ({"not_accounted": sentences} if sentences else {})
