"""DP-SGD for networks: clipped per-record gradients (record_gradients.py), noise once per logical step.

Privacy: as in first_order.py. The gradient of a record is taken over all parameters together and clipped, whatever the
size of the micro-batches, so that the sum over a batch as it is computed in float64 moves by at most C where a record
comes or goes (record_sums.py, which says what that leaves out); independent noise of standard deviation s C is added to
every parameter's sum once per step, an empty batch included; the result is divided by the public q n (tramer2021
section 2; de2022 Eq. 3). All of it presumes that the gradient of a record does not depend on others: every network is
tested for that before it is trained (network_check.py), and `record_by_record` takes each gradient alone
(one_by_one.py).
"""

import functools
import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
import torch

from dpstudy.core.errors import StudyError
from dpstudy.core.progress import progress
from dpstudy.features.scaling import constants
from dpstudy.methods import private_normalisation, schedule
from dpstudy.methods.augmentation import Augmentation
from dpstudy.methods.checks import finite
from dpstudy.methods.keeper import Keeper
from dpstudy.methods.network_run import NetworkRun
from dpstudy.methods.network_start import HEAD_FIRST, check_trained, read_start
from dpstudy.methods.preconditioning import Preconditioning
from dpstudy.methods.private_normalisation import ChannelSums, Normalisation
from dpstudy.methods.problem import Fit, Plan, Problem
from dpstudy.methods.ranks import Dealt, current
from dpstudy.methods.record_gradients import LOSSES, PRECISIONS
from dpstudy.methods.records import Records
from dpstudy.methods.sampling import units_of_steps
from dpstudy.methods.schedule import Schedule, prepared_by, spent
from dpstudy.methods.units import Units, units_of
from dpstudy.models import networks
from dpstudy.models.network import NetworkModel
from dpstudy.privacy.accounting import certify
from dpstudy.privacy.events import known_to_renyi, unamplified
from dpstudy.privacy.noise import NoiseSource
from dpstudy.privacy.printed import upper_bound
from dpstudy.privacy.renyi import rough_epsilon
from dpstudy.schema.hyperparameters import setting

NAMES = {
    "anyOf": [
        {
            "enum": [
                "tanh-28", "tanh-32", "tanh-32-smaller", "scatter-28", "scatter-28-printed", "scatter-32",
                "scatter-32-printed", "scatter-32-smaller",
            ]
        },
        {
            "type": "string",
            "pattern": "^(wrn-[0-9]+-[0-9]+(-gn|-plain)?|nf-resnet-[0-9]+|nfnet-f[0-6]|lenet|equivariant-resnet-9|"
            "timm:[A-Za-z0-9_.]+(@[1-9][0-9]*)?([+]gn|[+]frozen)?)$",
        },
    ]
}  # fmt: skip
START = {
    "anyOf": [
        {"type": "string"},
        {
            "type": "object",
            "additionalProperties": False,
            "required": ["weights"],
            "properties": {
                "weights": {
                    "description": "A safetensors file under data_root; or {package: NAME}, of an installed Python "
                    "package (docs/features.md).",
                    "anyOf": [
                        {"type": "string"},
                        {
                            "type": "object",
                            "additionalProperties": False,
                            "required": ["package"],
                            "properties": {"package": {"type": "string"}},
                        },
                    ],
                },
                "sha256": {
                    "type": "string",
                    "pattern": "^[0-9a-f]{64}$",
                    "description": "the 64 lower-case hexadecimal digits of the file's SHA-256",
                },
                "trained_on": {
                    "description": "What the weights were trained on. Public sets of the study, which are then "
                    "matched with the private records; or unmatched, which the ledger says. Of a package it is known.",
                    "anyOf": [
                        {"enum": ["unmatched", "imagenet-1k"]},
                        {"type": "array", "minItems": 1, "uniqueItems": True, "items": {"type": "string"}},
                    ],
                },
            },
        },
    ]
}
TRAINED = {
    "anyOf": [
        {"enum": ["all", "classifier", "biases"]},
        *(
            {
                "type": "object",
                "additionalProperties": False,
                "required": [key],
                "properties": {key: {"type": "integer", "minimum": 1}},
            }
            for key in ("last", "lora", "head_first")
        ),
    ]
}
AUDITED_DIM = None  # layers mix all: one canary plays at a time, of the images' own shape
TESTED = (
    "The network {!r} is not this library's own: that no record has a part in what it computes of another was tested "
    "on random pictures before training, and is not proved. With `record_by_record: true` each record's gradient is "
    "taken alone."
)
BATCHED = (
    "Each record's gradient was computed in float32 beside others, and its last bits may depend on how many they were: "
    "of a million records one moved a gradient sum by up to 1.008 times its sensitivity in what was tried. With "
    "`record_by_record: true` nothing of it depends on other records."
)
__all__ = ["Parameters", "fit", "plan", "prepare", "prepared_by", "spent"]


ENTRIES = {  # properties that the workflow's rules read (docs/add-a-method.md)
    **schedule.LENGTH,
    "x-reads": "features",
    "x-reads-images": True,  # extractor images: the image shards themselves
    "x-curve": True,
    "x-beyond-target": {"sampling": "shuffle"},  # these entries certify a larger epsilon than the target
    "x-per-seed": True,  # each seed is a job, with checkpoints
    "x-one-label": {"where": [{"loss": "softmax"}], "instead": "set loss: sigmoid"},
    "x-averages": True,  # supports `contributions: average`
    # What changes memory and speed alone: a training with secure noise that was begun goes on with others.
    "x-free-to-change": ["micro_batch", "compile", "checkpoint_minutes", "checkpoint_steps", "devices"],
}


@dataclass(frozen=True, repr=False)
class Parameters(Schedule):
    """Hyper-parameters of DP-SGD for networks, besides those of `Schedule`."""

    network: str = setting(
        about="Of tramer2021: tanh-28, tanh-32 and tanh-32-smaller for images, scatter-28 and scatter-32 for "
        "ScatterNet features (the tables' own layouts: scatter-28-printed, scatter-32-printed). Of de2022: Wide "
        "ResNets such as wrn-16-4, without weight standardisation wrn-16-4-gn, without group normalisation too "
        "wrn-16-4-plain; normaliser-free nf-resnet-50, nfnet-f3; lenet. Filters shared over rotations and reflections: "
        "equivariant-resnet-9. Any of timm's as timm:NAME, with group in place of batch normalisation as timm:NAME+gn, "
        "with public statistics of it as timm:NAME+frozen; on images enlarged to 64 x 64 as timm:NAME@64.",
        named=True,
        schema=NAMES,
    )
    loss: str = setting("softmax", "sigmoid: the mean over classes.", choices=LOSSES)
    # What changes no result, and so is no part of what keys the noise of `fit`, is not in the repr.
    micro_batch: int | Literal["auto"] = setting(
        "auto",
        "Records whose gradients are held at once; it changes memory and speed, not the result. auto: as many as 1.5 "
        "GB, or half of a GPU's free memory, hold.",
        least=1,
        keyed=False,
    )
    precision: str = setting(
        "float32",
        "Of the passes through the network; gradients are clipped and summed as in float32.",
        choices=PRECISIONS,
    )
    compile: bool = setting(
        False,
        "Compile the passes through the network (torch.compile): minutes at first; worth a try on a GPU, slower on "
        "CPUs.",
        keyed=False,
    )
    record_by_record: bool | None = setting(
        None,
        "Take each record's gradient in a pass of its own, false where absent: slow, and for networks that this "
        "library does not know the surest way.",
        keyed=False,
    )
    checkpoint_minutes: float = setting(
        5.0, "A killed run loses at most this much of its work; it changes no result.", least=0, keyed=False
    )
    checkpoint_steps: int = setting(
        0,
        "A checkpoint after so many steps too, however little time they took; 0: by time alone.",
        least=0,
        keyed=False,
    )
    moving_average: float = setting(
        0.0, "Decay of an exponential average of the weights, which is then the model; 0 for none.", least=0, below=1
    )
    weight_decay: float = setting(0.0, "An L2 penalty; its gradient joins the released one.", least=0)
    learning_rate_decay: Literal["none", "cosine"] = setting(
        "none", "cosine: from the learning rate to zero along half a cosine."
    )
    augmentation: Augmentation | None = setting(
        None,
        "Random crops and flips: the gradients of a record's copies are averaged before it is clipped (de2022). Of "
        "images.",
    )
    start: str | dict | None = setting(
        None,
        "Public weights to start from, all but the classifier's: the name of a backbone of the study, a safetensors "
        "file under data_root, or a Python package. A random start where absent.",
        schema=START,
        hashed=False,
    )
    trained: str | dict[str, int] = setting(
        "all",
        "What is trained beside the classifier, with start: all layers; nothing (classifier, which needs "
        "augmentation); biases; the last k layers; or low-rank layers of rank r beside the linear ones. Or all layers "
        "after so many steps of the classifier alone (DP-RandP).",
        schema=TRAINED,
        hashed=False,
    )
    preconditioning: Preconditioning | None = setting(
        None,
        "Record gradients pass public maps before they are clipped, made of what the network does with noise whose "
        "spectrum is that of photographs (DP-KFC); not around layers whose weights are standardised.",
        keyed=False,  # where there is none: see Schedule.__repr__
    )
    devices: int = setting(
        1,
        "Processes of one machine that share the training of a cell, each with a GPU of its own where there are "
        "enough.",
        least=1,
        keyed=False,
    )

    METHOD: ClassVar[str] = "network_dpsgd"
    LATER: ClassVar[tuple[str, ...]] = (*Schedule.LATER, "preconditioning")

    def __post_init__(self):
        super().__post_init__()
        networks.check(self.network)
        check_trained(self.trained)
        if self.trained != "all" and self.start is None:
            raise StudyError("network_dpsgd: `trained` goes with `start`: what is not trained must come from somewhere")
        if self.trained == "classifier" and self.augmentation is None:
            raise StudyError(
                "network_dpsgd: trained 'classifier' needs `augmentation`; without augmentation a record's "
                "features never change: extract them once (extractor backbone or timm), and train first_order on them"
            )
        if self.record_by_record and self.compile:
            raise StudyError("network_dpsgd: record_by_record and compile do not go together; leave one of them out")
        if self.preconditioning and self.trained != "all" and not self.head_steps:
            raise StudyError("network_dpsgd: preconditioning is for all layers; leave `trained` out")
        if self.preconditioning and self.optimiser == "adam":
            raise StudyError("network_dpsgd: preconditioning goes with optimiser sgd or momentum")

    @property
    def head_steps(self) -> int:
        """The number of steps, at the beginning, that train the classifier alone."""
        return self.trained.get(HEAD_FIRST, 0) if isinstance(self.trained, dict) else 0

    def rate_at(self, step: int, steps: int) -> float:
        """The factor on the learning rate in a step, where the first step is 1."""
        return 1.0 if self.learning_rate_decay == "none" else (1 + math.cos(math.pi * (step - 1) / steps)) / 2


@dataclass(frozen=True)
class TrainingSet:
    """Private records, and the data for training that all seeds share.

    These are the private sums of a normalisation (or None), the public weights to start from (or None), and the public
    center and scale of images that are read as they are (or None). `rows` counts those of all processes that share a
    training, among which they are `dealt`, or which all hold all.
    """

    records: Records
    rows: int
    units: Units
    dealt: bool
    sums: ChannelSums | None
    start: dict[str, torch.Tensor] | None = None
    scaled: tuple[np.ndarray, np.ndarray] | None = None


def plan(parameters: Parameters, problem: Problem) -> Plan:
    """Plan steps and noise, as `schedule.plan` does.

    Raises:
        StudyError: records that cannot be augmented, or no step that trains more than the classifier.
    """
    if parameters.augmentation:
        parameters.augmentation.check(problem.shape)
    planned = schedule.plan(parameters, problem)
    if parameters.head_steps and parameters.head_steps >= (steps := parameters.total_steps(problem)):
        raise StudyError(
            f"network_dpsgd: trained.head_first {parameters.head_steps}: must be less than the {steps} steps"
        )
    if parameters.record_by_record or not planned.events:
        return planned
    sentences = () if networks.is_shipped(parameters.network) else (TESTED.format(parameters.network),)
    # of seeded noise every ledger says already that sums are rounded
    return replace(planned, not_accounted=sentences + ((BATCHED,) if problem.secure else ()))


def prepare(
    batches,
    parameters: Parameters,
    problem: Problem,
    start: str | os.PathLike | None = None,
    scaling: str | None = None,
) -> TrainingSet:
    """Read (features, labels) batches; non-finite records take no part.

    Args:
        start: the file of weights that `parameters.start` names.
        scaling: of images (C, H, W) of grey levels 0..255, which the batches then hold; None: they hold features.

    Raises:
        StudyError: the file is missing, damaged or another one; images with a private normalisation.
    """
    if scaling and parameters.normalisation:
        raise StudyError("network_dpsgd: `normalisation` is of features; extract the images with extractor pixels")
    if (start is None) != (parameters.start is None):
        raise StudyError("network_dpsgd: `start` and a file of weights go together")
    public = None if start is None or parameters.start is None else read_start(start, parameters.start)
    ranks = current()
    dealt = ranks.size > 1 and not parameters.normalisation  # a normalisation needs all records in each process
    mine = Dealt(batches, ranks) if dealt else batches
    # Full batches too: copies are drawn for micro-batches of one size, and ranks ask for records of their own.
    records = Records.of(mine, problem, picked=True, tensors=True)
    rows = mine.rows if dealt else records.rows
    units = units_of(batches, rows, problem, parameters.picked, parameters.sampling == "shuffle")
    sums = private_normalisation.shared_sums(records, parameters.normalisation, problem)
    scaled = constants(scaling, problem.shape) if scaling else None
    return TrainingSet(records, rows, units, dealt, sums, start=public, scaled=scaled)


def fit(
    data: TrainingSet,
    parameters: Parameters,
    problem: Problem,
    plan: Plan,
    source: NoiseSource,
    monitor: Callable[[int, NetworkModel], None] | None = None,
    keeper: Keeper | None = None,
) -> Fit:
    """Train one seed, calling `monitor(step, model)` `curve_points` times with released models.

    `keeper` has the checkpoint that training goes on from, and takes new ones.
    """
    ranks = current()
    if parameters.bands > 1:
        keeper = None  # a checkpoint would hold private sums of the last steps
    if parameters.sampling == "shuffle" and source.mode == "secure":
        keeper = (
            None  # the rest of an epoch's permutation is lost with the process: a new one could take a record twice
        )
    kept = keeper.load() if keeper else None
    run = NetworkRun(data, parameters, problem, source, ranks, kept[1].get("start") if kept else None)
    if kept:
        run.restore(*kept, source)
    elif data.scaled:
        run.normalise(*data.scaled)
    elif parameters.normalisation:
        released = ranks.agreed(_released(data, parameters.normalisation, problem, source) if ranks.first else None)
        if released is None:
            raise RuntimeError("the first of the processes told no normalisation")
        run.normalise(*released)
    steps, rate = parameters.total_steps(problem), parameters.rate(problem)
    stops, taken = parameters.stops(steps), run.done
    sampler = units_of_steps(parameters, problem, data.units, source)
    copies = parameters.augmentation.copies if parameters.augmentation else 1
    note = _note(plan, problem, rate * problem.n * copies, taken, bool(plan.events) and not source.shared)
    for step, index in enumerate(progress(sampler, source.title, steps, note, taken), start=1):
        if step <= taken:
            continue  # already trained: drawn only so that later batches are those of an uninterrupted run
        run.step(index, plan, source)
        if monitor and step in stops and ranks.first:
            monitor(step, run.model())
        if keeper and step < steps and ranks.first and keeper.due(step):
            keeper.save(*run.state(source))
    return Fit(finite("network_dpsgd", run.model()))


def _released(data: TrainingSet, normalisation: Normalisation, problem: Problem, source: NoiseSource):
    """The released center and scale of a private normalisation, or the public ones."""
    return private_normalisation.normalised(data.records, data.sums, normalisation, problem, source)[1:]


def _note(plan: Plan, problem: Problem, images: float, taken: int, guaranteed: bool) -> Callable[[int], str]:
    """A function step -> progress note of the training: its speed, and at most how much of epsilon it has spent.

    Speed is by the public mean number of images a step. Epsilon is exact or a quick bound, and never more than all
    steps are certified for; nothing is said of it where nothing is guaranteed.
    """
    started = time.monotonic()
    in_all = functools.cache(lambda: certify(plan.events, problem.budget.delta).epsilon)

    def note(done: int) -> str:
        speed = images * max(0, done - taken) / (time.monotonic() - started)
        if not guaranteed:
            return f"{speed:.0f} images/s"
        events, delta = spent(plan, done), problem.budget.delta
        quick = not unamplified(events) and known_to_renyi(events)
        epsilon = min(rough_epsilon(events, delta), in_all()) if quick else certify(events, delta).epsilon
        return f"{speed:.0f} images/s, epsilon at most {upper_bound(epsilon, places=2)} so far"

    return note
