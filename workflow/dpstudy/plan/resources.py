"""The memory in megabytes that jobs declare; `python -m benchmarks memory` compares it with what they use.

Each function of (study, wildcards, input) says what a job of one rule takes at most, from the config, the wildcards and
the files that it reads, as Snakemake gives them.
"""

import functools
import itertools
import json
import math
import os
from collections.abc import Callable, Mapping
from typing import Any

from dpstudy.config.cells import Cell, unfold
from dpstudy.config.space import values_of
from dpstudy.config.tuned import pays
from dpstudy.core.arrays import has_driver
from dpstudy.data.shard_size import unpacked_bytes
from dpstudy.methods.network_memory import micro_batch_mb
from dpstudy.plan.training import devices_of, entries_where, has_seed_jobs
from dpstudy.plan.wildcards import cell_of
from dpstudy.schema.methods import method_schema
from dpstudy.tables.styles import table_style

Megabytes = Callable[[dict, Any, Any], int]

NESTED_MB = 250  # of the Snakemake in a job of a cluster
HELD_MB = 1024  # HOLD_BYTES of dpstudy.methods.records
PICKED_MB = 4096  # PICK_BYTES
GPU_MB = 1500  # of torch on the host where it computes on a GPU: 1,000 to 1,100 measured (H100, torch 2.11)
WITH_TORCH = ("network_dpsgd", "instance_smoothing")  # on a CPU too
WITH_GRAMS = ("least_squares", "feature_covariance", "newton", "kernel_mean")  # d x d matrices
LEAST_MB = {"prepare_manifest": 140, "cell": 235, "sums": 147}  # of jobs that hold next to nothing
CLAIMS_MB = {"anon_smoothing": 120, "mehta2023": 120, "de2022": 165, "tramer2021": 275}  # the last two's by accountants
DISTRIBUTIONS_MB = 95  # of privacy loss distributions


@functools.cache
def gpus() -> int:
    """The number of GPUs of a job: one if this machine has any, or as DPSTUDY_GPU says.

    A profile's set-resources overrides it.

    Raises:
        StudyError: DPSTUDY_GPU is neither 0 nor 1.
    """
    return int(has_driver())


def by_size(least: float, factor: float) -> Megabytes:
    """A function that gives a job's megabytes from the total size of its inputs."""
    return lambda study, wildcards, input: int(least + factor * input.size_mb)


def by_largest(least: float, factor: float) -> Megabytes:
    """A function that gives a job's megabytes from the size of its largest input."""
    return lambda study, wildcards, input: int(least + factor * max(input.size_files_mb))


def with_gpu(megabytes: float) -> int:
    """The megabytes that torch takes: this many on a CPU, more with a GPU."""
    return int(megabytes + GPU_MB * gpus())


@functools.cache
def decoded_mb(paths: tuple[str, ...]) -> float:
    """Uncompressed megabytes of the largest row group of some shards, by their footers; 0 where none is complete."""
    return max((unpacked_bytes(path) for path in paths), default=0) / 1e6


def in_half_precision(study: dict, features: str) -> bool:
    """Whether features are stored in float16, so that they take twice as much in memory."""
    return study["features"][features].get("dtype") == "float16"


def streaming(
    megabytes_least: float, factor: float, limit: float, beyond: float = 1.7, processes: int = 1
) -> Megabytes:
    """A function that gives the megabytes of a job that holds its training data up to a limit, and else streams them.

    Beyond the limit it reads a few shards at a time. Data that models are scored on are held. Of several processes each
    has its share.
    """

    def megabytes(study: dict, wildcards: Any, input: Any) -> int:
        scored_on = [*input.get("test", []), *input.get("validation", [])]
        scored = sum(map(os.path.getsize, scored_on)) / 1e6
        learned = (input.size_mb - scored) / processes
        if learned <= limit:  # beyond HELD_MB not in two forms
            return with_gpu(megabytes_least + (factor if learned <= HELD_MB else beyond) * (learned + scored))
        return with_gpu(megabytes_least + 1.2 * scored + 2.5 * max(input.size_files_mb))

    return megabytes


def matrix_of(manifest: str) -> tuple[int, int]:
    """(d, m), the numbers of features and classes of a feature set, from its manifest."""
    return of_manifest(manifest, lambda content: (int(content["dim"]), len(content["classes"])), (0, 0))


def of_manifest(manifest: str, numbers: Callable[[Any], Any], unknown: Any) -> Any:
    """What `numbers` reads off a manifest; `unknown` where it is damaged."""
    try:
        return numbers(content_of(manifest))
    except (ValueError, KeyError, TypeError):
        return unknown


def content_of(manifest: str) -> Any:
    """The content of a manifest; None where it is damaged, which the job itself will report.

    Where it is still to be made, Snakemake asks again.
    """
    with open(manifest, encoding="utf-8") as file:
        try:
            return json.load(file)
        except ValueError:
            return None


def solving(study: dict, wildcards: Any, input: Any) -> int:
    """mem_mb of a training without a curve: least squares reads sums, others read records."""
    options = cell_of(wildcards).options(study)
    if options["method"] == "least_squares":  # where it pays for a choice, it reads validation records
        dim = matrix_of(input.train[0])[0]
        twice = 1.1 * max(input.size_files_mb)  # the file that is read stands in memory beside its tensors
        return int(195 + (4 if pays(options) else 1) * input.size_mb + twice + 48e-6 * dim**2)
    if without_torch(study, wildcards, input):
        return by_size(LEAST_MB["cell"], 4.4)(study, wildcards, input)
    return streaming(1350, 8, HELD_MB)(study, wildcards, input)


def with_scores(megabytes: Megabytes, seeds: int | None = None) -> Megabytes:
    """A function that adds to `megabytes` the memory of the test scores of `seeds` models (None: all).

    They are held three times while they are written.
    """

    def more(study: dict, wildcards: Any, input: Any) -> int:
        values = of_manifest(input.test[0], lambda manifest: manifest["rows"] * len(manifest["classes"]), 0)
        scored = len(study["seeds"]) if seeds is None else seeds
        return int(megabytes(study, wildcards, input) + 13e-6 * scored * values)

    return more


def sum_bytes(study: dict) -> int:
    """The bytes per number in a private sum: exact sums are float64."""
    return 8 if study["noise"] == "secure" else 4


def seed(study: dict, wildcards: Any, input: Any) -> int:
    """mem_mb of training one seed, for all its processes."""
    return devices_of(study, cell_of(wildcards)) * with_scores(stepped, 1)(study, wildcards, input)


def claimed(study: dict, wildcards: Any, input: Any) -> int:
    """mem_mb of a training that also attacks its method's claimed guarantee."""
    return with_scores(by_size(with_gpu(1100), 4))(study, wildcards, input)


def black_box(study: dict, wildcards: Any, input: Any) -> int:
    """mem_mb of a black-box audit, which trains networks."""
    return int(with_gpu(1100) + engine(cell_of(wildcards).options(study), input) + int(6 * input.size_mb))


def claims(study: dict, wildcards: Any, input: Any) -> int:
    """mem_mb of judging a paper's claims."""
    return int(CLAIMS_MB[wildcards.paper] + 8 * input.size_mb)


def without_torch(study: dict, wildcards: Any, input: Any) -> bool:
    """Whether a training computes with NumPy (dpstudy.core.arrays)."""
    return cell_of(wildcards).options(study)["method"] not in WITH_TORCH and not gpus() and input.size_mb <= HELD_MB


def tuning(study: dict, wildcards: Any, input: Any) -> int:
    """mem_mb of a hyper-parameter search, as of the cells that it is for."""
    curve = wildcards.entry in entries_where(study, curve=True)
    return (stepped if curve else solving)(study, wildcards, input)


def stepped(study: dict, wildcards: Any, input: Any) -> int:
    """mem_mb of a training in steps.

    Full batches may be read anew, mini-batches picked from a file, and their noise is found by privacy loss
    distributions.
    """
    options = cell_of(wildcards).options(study)
    sampled, half = is_sampled(options), in_half_precision(study, wildcards.features)
    if without_torch(study, wildcards, input):
        dim, classes = matrix_of(input.train[0])
        of_matrices = {"newton": 3e-6 * sum_bytes(study) * classes, "feature_covariance": 40e-6}
        matrices = of_matrices.get(options["method"], 0) * dim**2
        accountant = DISTRIBUTIONS_MB * (sampled and wildcards.epsilon != "inf")
        return int(LEAST_MB["cell"] + accountant + (5.8 if half else 3.6) * input.size_mb + matrices)
    factor = 4 if half else 3.2 if "normalisation" in options else 2.4
    beyond = 2 if half else 1.7
    least = 1080 + engine(options, input)
    network = options["method"] == "network_dpsgd"
    factor += 1.2 * network
    limit = PICKED_MB if sampled or network else HELD_MB
    shared = 1 if "normalisation" in options else options.get("devices", 1)
    return streaming(least, factor, limit, beyond, shared)(study, wildcards, input)


def engine(options: Mapping, input: Any) -> float:
    """mem_mb of the per-record gradients that a network's training holds at once on a CPU."""
    if options["method"] != "network_dpsgd" or gpus():
        return 0
    shape = (content_of(input.train[0]) or {}).get("image_shape") or [32, 32, 3]
    rule = options.get("augmentation", {})
    copies = rule.get("multiplicity", 1) + rule.get("mixed", 0)
    networks, sizes = values_of(options, "network"), values_of(options, "micro_batch", "auto")
    tried = itertools.product(networks, sizes, values_of(options, "batch_size", "full"))
    return max(_micro_batch(*one, copies=copies, pixels=math.prod(shape[:2])) for one in tried)


def _micro_batch(network: str, size: int | str, batch: int | str, copies: int, pixels: int) -> float:
    """The megabytes of a micro-batch of a network."""
    of = functools.partial(micro_batch_mb, network, copies, pixels)
    taken = of(None if size == "auto" else int(size))
    # few Poisson batches are twice as large as expected
    return taken if batch == "full" else min(taken, of(2 * int(batch)))


def is_sampled(options: Mapping) -> bool:
    """Whether an entry's releases are of sampled batches, or its search may try such."""
    if options["method"] == "instance_smoothing":  # its batches train W, without any noise
        return False
    searched = options.get("tuning", {}).get("space", {})
    return options.get("batch_size", "full") != "full" or "batch_size" in searched


def scoring(study: dict, wildcards: Any, input: Any) -> int:
    """mem_mb of evaluating scores: areas need scikit-learn, and intervals weight each test record in each sample."""
    decoded = sum(decoded_mb((path,)) for path in input.scores)
    records = of_manifest(input.run, lambda run: 1e6 * decoded / (4 * run["classes"] * len(study["seeds"])), 0)
    return int(240 + 9 * decoded + 40e-6 * study["evaluation"]["intervals"] * records)


def audit(study: dict, wildcards: Any, input: Any) -> int:
    """mem_mb of an audit with canaries: for networks, the gradients of all canaries."""
    if has_seed_jobs(study, wildcards.entry):
        return with_gpu(8000)
    return with_gpu(950) if gpus() or cell_of(wildcards).options(study)["method"] in WITH_TORCH else 233


def certification(study: dict, wildcards: Any, input: Any) -> int:
    """mem_mb of certificates: sampled batches need privacy loss distributions, and replays run trainings."""
    options = [cell.options(study) for cell in unfold(study) if cell.dataset == wildcards.dataset]
    with_torch = any(one["method"] in WITH_TORCH for one in options)
    least = 2500 if with_torch else 950 if any(map(is_sampled, options)) else 260
    grams = 0.0
    for manifest in input.layouts if any(one["method"] in WITH_GRAMS for one in options) else ():
        dim, classes = matrix_of(manifest)
        grams = max(grams, dim**2 * (72 + 24 * classes * any(map(has_class_grams, options))) / 1e6)
    return int(least + grams + 8 * input.size_mb)


def has_class_grams(options: Mapping) -> bool:
    """Whether an entry holds a Gram matrix of features for each class."""
    per_class = method_schema(options["method"]).get("x-per-class", {})
    return options["method"] == "newton" or bool(per_class) and all(options[key] == per_class[key] for key in per_class)


def bundle(study: dict, wildcards: Any, input: Any) -> int:
    """mem_mb of a bundle, including its certificate."""
    sampled = is_sampled(cell_of(wildcards).options(study))
    return int((950 if sampled else 300) + 8 * input.size_mb)


def table(study: dict, wildcards: Any, input: Any) -> int:
    """mem_mb of a table; tables of claims calibrate noise."""
    table = study["tables"][wildcards.table]
    least = CLAIMS_MB[table["paper"]] if table_style(table).judges else 0
    return int(max(138, least) + 8 * input.size_mb)


def total(study: dict, wildcards: Any, input: Any) -> int:
    """mem_mb of adding up privacy costs, with privacy loss distributions where batches are sampled."""
    sampled = any(is_sampled(cell.options(study)) for cell in unfold(study))
    return int((195 if sampled else 135) + 8 * input.size_mb)


def seed_gpus(study: dict, cell: Cell) -> int:
    """The number of GPUs of a seed's training: one, where there is one, for each process."""
    return devices_of(study, cell) * gpus()


def tuning_gpus(study: dict, cell: Cell) -> int:
    """The number of GPUs of a search: one, where there is one, if its trials train in steps."""
    return gpus() if method_schema(study["methods"][cell.entry]["method"])["x-curve"] else 0
