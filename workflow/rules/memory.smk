# The memory that jobs declare: python -m benchmarks memory holds it against what they take.

import math

NESTED_MB = 250  # of the Snakemake in a job of a cluster
HELD_MB = 1024  # HOLD_BYTES of dpstudy.methods.records
PICKED_MB = 4096  # PICK_BYTES
NAMES_PER_MB = 0.05  # of what is kept of each record, in MB for each MB of shards
GPU_MB = 1500  # of torch on the host where it computes on a GPU: 1,000 to 1,100 measured (H100, torch 2.11)
NAME_MB = 8e-4  # of what is known of each record of a table
ROW_GROUP_MB = 67  # of dpstudy.data.shards
EXACT_DIM = 5000  # of dpstudy.features.fits
UNSEEN_MB = 2000  # of a shard whose size cannot be seen beforehand
SHARDS_HELD = 4  # that a pass works on, reads ahead and decodes
WITH_TORCH = ("network_dpsgd", "instance_smoothing")  # on a CPU too


CIFAR_PIXELS = 1.84e8  # in all
LEAST_MB = {"prepare_manifest": 134, "cell": 190, "sums": 147}  # of jobs that hold next to nothing
CLAIMS_MB = {"anon_smoothing": 120, "mehta2023": 120, "de2022": 165, "tramer2021": 240}  # the last two's by accountants
DISTRIBUTIONS_MB = 95  # of privacy loss distributions
NETWORK_MB = 650  # of torch with what extracts features


def peak(megabytes):
    """mem_mb, the most resident memory that a job takes (python -m benchmarks memory measures it); in a cluster with that
    of the Snakemake which each job has of its own. Grown with the attempt."""
    amount = megabytes if callable(megabytes) else lambda wildcards, input: megabytes
    return grown(lambda wildcards, input: amount(wildcards, input) + (0 if workflow.local_exec else NESTED_MB))


def memory(megabytes_least, factor):
    """Megabytes from the size of the inputs."""
    return lambda wildcards, input: int(megabytes_least + factor * input.size_mb)


def with_gpu(megabytes):
    """What torch takes on a CPU, and more of it with a GPU."""
    return int(megabytes + GPU_MB * gpu())


def manifest_memory(wildcards, input):
    """mem_mb of describing shards of images: a row group is held in several forms, and little of a shard that was read is
    given back before some more are."""
    shards = [*input.shards, *input.get("others", [])]
    held = decoded_mb(tuple(map(str, shards)))
    least = 235 if SOURCES[wildcards.source]["reader"] == "digits" else LEAST_MB["prepare_manifest"]
    forms = min(11, 4.5 + 1.7 * (len(shards) - 1))
    more = forms * min(held, ROW_GROUP_MB) + 3 * max(0, held - ROW_GROUP_MB)
    return int(least + more + NAMES_PER_MB * input.size_mb)


def aligning_memory(wildcards, input):
    """mem_mb of comparing a shard's images with candidates: some hundred pairs at a time, where it has so many."""
    own = os.path.getsize(input.private) / 1e6
    return int(765 + 150 * min(own, 2.8) + 10 * own)


@functools.cache
def decoded_mb(paths):
    """Megabytes of the largest of some shards, its columns unpacked, as their footers say; 0 where none is whole."""
    return max((unpacked_bytes(path) for path in paths), default=0) / 1e6


def description_memory(wildcards, input):
    """mem_mb of describing shards of features: one is read whole, and looked at a row group at a time."""
    largest = max(input.size_files_mb)
    factor = 5.4 if in_half_precision(wildcards.features) else 4
    return int(110 + factor * largest + 4.6 * min(max(0, largest - 1.5), ROW_GROUP_MB) + NAMES_PER_MB * input.size_mb)


def in_half_precision(features):
    """Whether features are kept in float16, and twice as large where they are worked on."""
    return STUDY["features"][features].get("dtype") == "float16"


def streaming_memory(megabytes_least, factor, limit, beyond=1.7, processes=1):
    """Megabytes of a job, or of each of several processes that share what it learns from, that holds that up to a limit,
    and beyond it reads it a few shards at a time; what models are scored on is held."""

    def megabytes(wildcards, input):
        scored_on = [*input.get("test", []), *input.get("validation", [])]
        scored = sum(map(os.path.getsize, scored_on)) / 1e6
        learned = (input.size_mb - scored) / processes
        if learned <= limit:  # beyond HELD_MB not in two forms
            return with_gpu(megabytes_least + (factor if learned <= HELD_MB else beyond) * (learned + scored))
        return with_gpu(megabytes_least + 1.2 * scored + 2.5 * max(input.size_files_mb))

    return megabytes


def preparation_memory(wildcards, input):
    """mem_mb of reading a shard of images, and of naming all of a data set by what they hold before."""
    own = own_sources(SOURCES[wildcards.source]) if wildcards.source in STUDY["datasets"] else []
    named = any(map(may_be_numbered, own)) and not numbered(wildcards.source)
    return int(reading_memory(wildcards, input) + (3e-6 * BLOCK_BYTES if named else 0))


def reading_memory(wildcards, input):
    """Megabytes of reading a shard: a row group of images is held four times, the rest and what names them once."""
    options = SOURCES[wildcards.source]
    if options["reader"] not in SMALL_IMAGES or options["reader"] == "idx":
        size = shard_size(options, study_locations.data_root(STUDY), wildcards.split)
        if options["reader"] == "idx":
            return int(118 + 1.15e-6 * size.file_bytes + 3e-6 * size.image_bytes) if size else 250
        if size is None:
            return UNSEEN_MB
        images = size.image_bytes / 1e6
        return int(150 + NAME_MB * size.records + 1.1 * images + 3 * min(images, ROW_GROUP_MB))
    if options["reader"] == "digits":
        return 235  # scikit-learn, which has them
    if "count" not in options:
        return int(120 + 3e-6 * CIFAR_PIXELS / options["shards"])
    height, width = options.get("size", [28, 28])
    planted = "plant" in options and wildcards.split == "train" and int(wildcards.shard) == options["shards"] - 1
    least = (205 if options["reader"] == "glyphs" else 115) + 60 * planted
    return int(least + 3e-6 * options["count"] * height * width * options.get("channels", 1) / options["shards"])


def extraction_memory(wildcards, input):
    """mem_mb of an extraction: the images with what becomes of them, and a network's weights."""
    options = STUDY["features"][wildcards.features]
    images, extracted = shard_of(input[0], options)
    if options["extractor"] == "pixels":
        return int(165 + 9.5 * extracted)
    if options["extractor"] == "precomputed":
        return int(300 + 6.5 * extracted)
    weights = sum(os.path.getsize(path) for path in weights_files(options)) / 1e6
    least = 1110 if options["extractor"] == "scatternet" else 900
    normalising = 3.2 * isinstance(options["normalise"], dict)  # by groups
    return with_gpu(least + 2 * images + (4 + normalising) * extracted + 4 * weights)


def fit_memory(wildcards, input):
    """mem_mb of a projection: its public features, and a covariance where they are few enough for one."""
    options = STUDY["fits"][wildcards.fit]
    content = content_of(input.public[0])
    try:
        rows = min(sum(shard["rows"] for shard in content["shards"]), options["images"])
        values = math.prod(content["image_shape"])
    except (ValueError, KeyError, TypeError):
        return 2400
    dim = int({"pixels": values, "scatternet": values * 81 / 16}.get(options["extractor"], 2048))
    least = 230 if options["extractor"] == "pixels" else NETWORK_MB
    covariance = 32e-6 * dim**2 if dim <= EXACT_DIM else 0
    return int(least + 3e-6 * 4 * rows * dim + covariance + (GPU_MB * gpu() if "backbone" in options else 0))


def shard_of(manifest, options):
    """(images, features): megabytes of a split's largest shard as float32, from its manifest, or 0 where that is none.

    ScatterNet makes 81 numbers of 16 of a channel; of networks and what is brought the widest that are known count.
    """
    content = content_of(manifest)
    try:
        values = math.prod(content["image_shape"] or [4096])
        rows = max(shard["rows"] for shard in content["shards"])
    except (ValueError, KeyError, TypeError):
        return 0, 0
    made = {"pixels": values, "scatternet": values * 81 / 16, "random_patches": 8 * options.get("filters", 0)}
    dim = made.get(options["extractor"], {"backbone": 640, "timm": 2048}.get(options["extractor"], 4096))
    if "fit" in options:
        dim = STUDY["fits"][options["fit"]].get("dim", dim)
    return 4e-6 * rows * values, 4e-6 * rows * dim


SUM_BYTES = 8 if STUDY["noise"] == "secure" else 4  # of a private sum: exact ones are float64


def statistics_memory(wildcards, input):
    """mem_mb of sums: d x d of them, in float64 and float32, beside the shards that a pass has in hand; more where torch
    makes them."""
    dim, classes = matrix_of(input.features[0])
    grams = dim**2 * (16 + SUM_BYTES * classes * (wildcards.grams == "per-class")) / 1e6
    with_torch = with_gpu(700) if gpu() or input.size_mb > HELD_MB else 0
    shards = [path for path in input.features if path.endswith(".parquet")]
    held = min(SHARDS_HELD, len(shards)) * max(input.size_files_mb)
    least = LEAST_MB["sums"] + min(40, 0.06 * dim) + 10 * (wildcards.grams == "per-class")
    return int(least + with_torch + grams + held)


def matrix_of(manifest):
    """(d, m) of a feature set, from its manifest."""
    content = content_of(manifest)
    try:
        return int(content["dim"]), len(content["classes"])
    except (ValueError, KeyError, TypeError):
        return 0, 0


def content_of(manifest):
    """A manifest's content. Where it is still to be made, Snakemake asks again; the job says it if it is damaged."""
    with open(manifest, encoding="utf-8") as file:
        try:
            return json.load(file)
        except ValueError:
            return None


def solving_memory(wildcards, input):
    """mem_mb of what has no curve: least squares reads sums, the others records."""
    options = options_of(wildcards)
    if options["method"] == "least_squares":  # where it pays for a choice, it reads validation records
        dim = matrix_of(input.train[0])[0]
        return int(195 + (4 if pays(options) else 1.5) * input.size_mb + 48e-6 * dim**2)
    if without_torch(wildcards, input):
        return memory(LEAST_MB["cell"], 4.4)(wildcards, input)
    return streaming_memory(1350, 8, HELD_MB)(wildcards, input)


def with_scores(megabytes, seeds=len(STUDY["seeds"])):
    """The same, and what the models of so many seeds make of the test records: held three times while it is written."""

    def more(wildcards, input):
        manifest = content_of(input.test[0])
        try:
            values = manifest["rows"] * len(manifest["classes"])
        except (KeyError, TypeError):
            values = 0
        return int(megabytes(wildcards, input) + 13e-6 * seeds * values)

    return more


def without_torch(wildcards, input):
    """Whether a training computes with NumPy (dpstudy.core.arrays)."""
    return options_of(wildcards)["method"] not in WITH_TORCH and not gpu() and input.size_mb <= HELD_MB


def tuning_memory(wildcards, input):
    """mem_mb of a search: that of the cells that it chooses for."""
    curve = wildcards.entry in entries_where(curve=True)
    return (stepped_memory if curve else solving_memory)(wildcards, input)


def stepped_memory(wildcards, input):
    """mem_mb of a training in steps: full batches may be read anew, mini-batches picked from a file, and their noise is
    found by privacy loss distributions."""
    options = options_of(wildcards)
    sampled = is_sampled(options)
    if without_torch(wildcards, input):
        dim, classes = matrix_of(input.train[0])
        matrices = {"newton": 3e-6 * SUM_BYTES * classes, "feature_covariance": 40e-6}.get(
            options["method"], 0
        ) * dim**2
        accountant = DISTRIBUTIONS_MB * (sampled and wildcards.epsilon != "inf")
        return int(LEAST_MB["cell"] + accountant + 3.6 * input.size_mb + matrices)
    half = in_half_precision(wildcards.features)
    held = 4 if half else 3.2 if "normalisation" in options else 2.4
    beyond = 2 if half else 1.7
    least = 1080 + engine_memory(options, input)
    network = options["method"] == "network_dpsgd"
    held += 1.2 * network
    limit = PICKED_MB if sampled or network else HELD_MB
    shared = 1 if "normalisation" in options else options.get("devices", 1)
    return streaming_memory(least, held, limit, beyond, shared)(wildcards, input)


def engine_memory(options, input):
    """mem_mb of the gradients that a network's training forms at once on a CPU."""
    if options["method"] != "network_dpsgd" or gpu():
        return 0
    shape = (content_of(input.train[0]) or {}).get("image_shape") or [32, 32, 3]
    copies = options.get("augmentation", {}).get("multiplicity", 1)
    of = functools.partial(micro_batch_mb, options["network"], copies, math.prod(shape[:2]))
    size, batch = options.get("micro_batch", "auto"), options.get("batch_size", "full")
    taken = of() if size == "auto" else of(size)
    return taken if batch == "full" else min(taken, of(2 * batch))  # few Poisson batches are twice as large as expected


def is_sampled(options):
    """Whether what is released of batches is of samples, or a search may try such."""
    if options["method"] == "instance_smoothing":  # its batches train W, without any noise
        return False
    searched = options.get("tuning", {}).get("space", {})
    return options.get("batch_size", "full") != "full" or "batch_size" in searched


def scoring_memory(wildcards, input):
    """mem_mb of what scores are worth: areas take scikit-learn, intervals weigh each test record in each sample."""
    held = sum(decoded_mb((path,)) for path in input.scores)
    try:
        records = 1e6 * held / (4 * content_of(input.run)["classes"] * len(STUDY["seeds"]))
    except (KeyError, TypeError):
        records = 0
    return int(240 + 9 * held + 40e-6 * STUDY["evaluation"]["intervals"] * records)


def audit_memory(wildcards, input):
    """mem_mb of attacks: for networks, the gradients of all canaries."""
    if wildcards.entry in entries_where(curve=True, per_seed=True):
        return with_gpu(8000)
    return with_gpu(950) if gpu() or options_of(wildcards)["method"] in WITH_TORCH else 233


def certification_memory(wildcards, input):
    """mem_mb of certifying: sampled batches need privacy loss distributions, and a replay what a training does beside
    its records."""
    own = [cell.options(STUDY) for cell in CELLS if cell.dataset == wildcards.dataset]
    least = 2500 if any(one["method"] in WITH_TORCH for one in own) else 950 if any(map(is_sampled, own)) else 260
    grams = 0
    for manifest in input.layouts:
        dim, classes = matrix_of(manifest)
        grams = max(grams, dim**2 * (72 + 24 * classes * any(map(has_class_grams, own))) / 1e6)
    return int(least + grams + 8 * input.size_mb)


def has_class_grams(options):
    """Whether an entry holds a matrix of features for each class."""
    per_class = method_schema(options["method"]).get("x-per-class", {})
    return options["method"] == "newton" or bool(per_class) and all(options[key] == per_class[key] for key in per_class)


def bundle_memory(wildcards, input):
    """mem_mb of a bundle, whose cell is certified."""
    sampled = is_sampled(as_cell(wildcards).options(STUDY))
    return int((950 if sampled else 300) + 8 * input.size_mb)


def table_memory(wildcards, input):
    """mem_mb of a table; those of claims compute noise."""
    table = STUDY["tables"][wildcards.table]
    least = CLAIMS_MB[table["paper"]] if table.get("style") == "claims" else 0
    return int(max(138, least) + 8 * input.size_mb)


def total_memory(wildcards, input):
    """mem_mb of adding up what is spent: distributions too, where batches are sampled."""
    sampled = any(is_sampled(cell.options(STUDY)) for cell in CELLS)
    return int((195 if sampled else 135) + 8 * input.size_mb)
