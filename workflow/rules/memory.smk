# The memory that jobs declare: python -m benchmarks memory holds it against what they take.

import math

NESTED_MB = 250  # of the Snakemake in a job of a cluster
HELD_MB = 1024  # HOLD_BYTES of dpstudy.methods.records
PICKED_MB = 4096  # PICK_BYTES
NAMES_PER_MB = 0.5  # of ids that must be unique, in MB for each MB of shards
GPU_MB = 2500  # that torch takes on the host where it computes on a GPU; a guess, not measured
SHARDS_HELD = 4  # that a pass works on, reads ahead and decodes
WITH_TORCH = ("network_dpsgd", "instance_smoothing")  # on a CPU too


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


def shard_memory(megabytes_least, factor):
    """Megabytes of a job that reads its inputs one after the other, and keeps a name of each record."""

    def megabytes(wildcards, input):
        one = (factor + SHARDS_HELD) * max(input.size_files_mb)
        return int(megabytes_least + min(factor * input.size_mb, one + NAMES_PER_MB * input.size_mb))

    return megabytes


def streaming_memory(megabytes_least, factor, limit):
    """Megabytes of a job that holds what it learns from up to a limit, and beyond it reads that a few shards at a time;
    what models are scored on is held."""

    def megabytes(wildcards, input):
        scored_on = [*input.get("test", []), *input.get("validation", [])]
        scored = sum(map(os.path.getsize, scored_on)) / 1e6
        learnt_from = input.size_mb - scored
        held = learnt_from if learnt_from <= limit else SHARDS_HELD * max(input.size_files_mb)
        return with_gpu(megabytes_least + factor * (held + scored))

    return megabytes


def preparation_memory(wildcards, input):
    """mem_mb of reading images: those of the benchmarks are small."""
    return 350 if SOURCES[wildcards.source]["reader"] in SMALL_IMAGES else 2000


def extraction_memory(wildcards, input):
    """mem_mb of an extraction: the images with what becomes of them, and a network's weights."""
    if STUDY["features"][wildcards.features]["extractor"] in ("pixels", "precomputed"):
        return int(300 + max(20 * input.size_mb, 5 * largest_shard(input[0])))
    weights = sum(os.path.getsize(path) for path in weights_files(STUDY["features"][wildcards.features])) / 1e6
    return with_gpu(1000 + 20 * max(input.size_mb - weights, 0) + 4 * weights)


def largest_shard(manifest):
    """Megabytes of the images of a split's largest shard as float32, from its manifest, or 0 where that is no manifest."""
    content = content_of(manifest)
    try:
        return 4e-6 * math.prod(content["image_shape"]) * max(shard["rows"] for shard in content["shards"])
    except (ValueError, KeyError, TypeError):
        return 0


def statistics_memory(wildcards, input):
    """mem_mb of sums: d x d of them, in float64 and float32, beside the shards that a pass has in hand; more where torch
    makes them."""
    dim, classes = matrix_of(input.features[0])
    grams = dim**2 * (16 + 4 * classes * (wildcards.grams == "per-class")) / 1e6
    with_torch = with_gpu(700) if gpu() or input.size_mb > HELD_MB else 0
    return int(185 + with_torch + grams + SHARDS_HELD * max(input.size_files_mb))


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
        return memory(265, 4 if pays(options) else 1)(wildcards, input)
    if without_torch(wildcards, input):
        return memory(290, 4)(wildcards, input)
    return streaming_memory(1350, 8, HELD_MB)(wildcards, input)


def without_torch(wildcards, input):
    """Whether a training computes with NumPy (dpstudy.arrays)."""
    return options_of(wildcards)["method"] not in WITH_TORCH and not gpu() and input.size_mb <= HELD_MB


def stepped_memory(wildcards, input):
    """mem_mb of a training in steps: full batches may be read anew, mini-batches picked from a file."""
    options = options_of(wildcards)
    if without_torch(wildcards, input):
        dim, classes = matrix_of(input.train[0]) if options["method"] == "newton" else (0, 0)
        return int(290 + 3 * input.size_mb + 8e-6 * classes * dim**2)
    searched = options.get("tuning", {}).get("space", {})
    full = options.get("batch_size", "full") == "full" and "batch_size" not in searched
    return streaming_memory(1150, 4, HELD_MB if full else PICKED_MB)(wildcards, input)


def audit_memory(wildcards, input):
    """mem_mb of attacks: for networks, the gradients of all canaries."""
    if wildcards.entry in entries_where(curve=True, per_seed=True):
        return with_gpu(8000)
    return with_gpu(950) if gpu() or options_of(wildcards)["method"] in WITH_TORCH else 235


def certification_memory(wildcards, input):
    """mem_mb of certifying: sampled batches need privacy loss distributions."""
    own = [cell.options(STUDY) for cell in CELLS if cell.dataset == wildcards.dataset]
    sampled = any(options.get("batch_size", "full") != "full" or "tuning" in options for options in own)
    return int((950 if sampled else 190) + 8 * input.size_mb)
