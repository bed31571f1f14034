"""A private epoch of the linear head against non-private epochs and against Opacus, on the same Poisson batches."""

import numpy as np
import torch

from benchmarks import opacus_head
from benchmarks.timing import alternate, medians, table, title, verdict
from dpstudy.methods.gradients import Head, clipped_sum
from dpstudy.methods.optimisers import make_optimiser
from dpstudy.methods.records import Records
from dpstudy.methods.sampling import batches as sampled_batches
from dpstudy.privacy.noise import NoiseSource

ROWS, DIM, CLASSES, BATCH = 60_000, 3_969, 10, 4_096
CLIP, NOISE_MULTIPLIER, RATE, MOMENTUM = 0.1, 1.0, 1.0, 0.9
HOOK_BATCHES = 2  # of an epoch's 15: per-example gradients are slow; the seconds are scaled up
_BLOCK = 132  # rows of the blocked loop: 2 MB, as dpstudy takes


class Task:
    """Synthetic records, the batches of one epoch, and the settings that every contestant shares.

    Attributes:
        features: (n, d) float32 of norm about 2; labels: (n,) int64; targets: (n, m) float32.
        batches: 15 index tensors, each row present with probability B/n.
    """

    def __init__(self):
        generator = np.random.default_rng(0)
        features = generator.standard_normal((ROWS, DIM), dtype=np.float32)
        features *= np.float32(2 / np.sqrt(DIM))
        labels = generator.integers(0, CLASSES, ROWS)
        self.features, self.labels = torch.from_numpy(features), torch.from_numpy(labels)
        self.targets = torch.nn.functional.one_hot(self.labels, CLASSES).float()
        rate, steps = BATCH / ROWS, round(ROWS / BATCH)
        self.batches = [torch.from_numpy(rows) for rows in sampled_batches(ROWS, rate, steps, "poisson", generator)]
        self.weights = torch.from_numpy(generator.standard_normal((CLASSES, DIM + 1), dtype=np.float32)) * 0.1

    def module(self) -> torch.nn.Linear:
        """A linear layer at zero, as every contestant starts."""
        module = torch.nn.Linear(DIM, CLASSES)
        torch.nn.init.zeros_(module.weight)
        torch.nn.init.zeros_(module.bias)
        return module


class PrivateHead:
    """dpstudy's own steps: clipped sum, noise, optimiser; with NumPy's arrays, or with tensors as for more data."""

    def __init__(self, task: Task, tensors: bool):
        self.task = task
        labels = task.targets.numpy().argmax(1)
        self.records = Records.read([(task.features.numpy(), labels)], CLASSES, tensors=tensors)
        self.head = Head("softmax", "learned", CLIP)
        self.runs = 0

    def epoch(self) -> None:
        """One private epoch from zero."""
        weights = self.head.start(self.records)
        optimiser = make_optimiser("momentum", RATE, MOMENTUM, weights)
        source = NoiseSource("seeded", "bench", self.runs)
        self.runs += 1
        for step, index in enumerate(self.task.batches, start=1):
            gradient = clipped_sum(self.records, weights, self.head, index.numpy())
            noise = source.gaussian("gradient", tuple(gradient.shape), NOISE_MULTIPLIER * CLIP, step=step)
            gradient += self.records.place.array(noise)
            optimiser.step(weights, gradient / BATCH)

    def clipped_sum(self, index: torch.Tensor) -> torch.Tensor:
        """The clipped sum (m, d + 1) of one batch at the task's random weights."""
        found = clipped_sum(self.records, self.records.place.array(self.task.weights), self.head, index.numpy())
        return torch.as_tensor(found)


def autograd_epoch(task: Task) -> None:
    """Plain torch: a linear layer, autograd and torch.optim.SGD."""
    module = task.module()
    optimiser = torch.optim.SGD(module.parameters(), lr=RATE, momentum=MOMENTUM)
    loss = torch.nn.CrossEntropyLoss()
    for index in task.batches:
        optimiser.zero_grad()
        loss(module(task.features[index]), task.labels[index]).backward()
        optimiser.step()


def product_epoch(task: Task, block: int) -> None:
    """Two matrix products a batch (in blocks of rows, if smaller), momentum by hand, no clipping and no noise."""
    weights, velocity = torch.zeros(CLASSES, DIM), torch.zeros(CLASSES, DIM)
    bias, bias_velocity = torch.zeros(CLASSES), torch.zeros(CLASSES)
    for index in task.batches:
        gradient, bias_gradient = torch.zeros(CLASSES, DIM), torch.zeros(CLASSES)
        for rows in index.split(block):
            x = task.features.index_select(0, rows)
            residual = torch.softmax(weights @ x.T + bias[:, None], 0) - task.targets[rows].T
            gradient.addmm_(residual, x)
            bias_gradient += residual.sum(1)
        velocity.mul_(MOMENTUM).add_(gradient, alpha=1 / len(index))
        bias_velocity.mul_(MOMENTUM).add_(bias_gradient, alpha=1 / len(index))
        weights.sub_(velocity, alpha=RATE)
        bias.sub_(bias_velocity, alpha=RATE)


def run(threads: int, repeats: int) -> None:
    """Time all contestants in one run and print seconds, ratios and the largest difference from Opacus."""
    torch.set_num_threads(threads)
    title("(a) One epoch of the linear head")
    print(
        f"n = {ROWS:,}, d = {DIM:,}, m = {CLASSES}, B = {BATCH:,}: {round(ROWS / BATCH)} Poisson batches, the same for"
    )
    print(f"all; {threads} thread(s), CPU seconds, median of {repeats} alternating repeats.\n")
    task = Task()
    private, on_tensors = PrivateHead(task, False), PrivateHead(task, True)
    seconds = medians(
        alternate(
            {
                "private": private.epoch,
                "tensors": on_tensors.epoch,
                "autograd": lambda: autograd_epoch(task),
                "products": lambda: product_epoch(task, ROWS),
                "blocks": lambda: product_epoch(task, _BLOCK),
                "ghost": lambda: opacus_head.ghost_epoch(task, task.batches),
                "hooks": lambda: opacus_head.hook_epoch(task, task.batches[:HOOK_BATCHES]),
            },
            repeats,
        )
    )
    seconds["hooks"] *= sum(map(len, task.batches)) / sum(map(len, task.batches[:HOOK_BATCHES]))
    words = {
        "private": "dpstudy, private",
        "tensors": "the same with tensors, as for more data",
        "autograd": "torch SGD, not private",
        "products": "two products a batch, not private",
        "blocks": f"the same in blocks of {_BLOCK} rows, not private",
        "ghost": "Opacus ghost clipping",
        "hooks": f"Opacus hooks (from {HOOK_BATCHES} of {len(task.batches)} batches, scaled)",
    }
    table(
        ("epoch", "CPU s", "to dpstudy"),
        [(words[name], f"{value:.3f}", f"{value / seconds['private']:.2f}") for name, value in seconds.items()],
    )
    _print_goals(seconds)
    _print_difference(task, private)


def _print_goals(seconds: dict[str, float]) -> None:
    plain = seconds["private"] / min(seconds["autograd"], seconds["products"])
    blocked = seconds["private"] / seconds["blocks"]
    ghost, hooks = seconds["ghost"] / seconds["private"], seconds["hooks"] / seconds["private"]
    print()
    table(
        ("goal", "wanted", "seen", ""),
        [
            ("cost over the faster of torch SGD and two products", "<= 1.3", f"{plain:.2f}", verdict(plain <= 1.3)),
            ("cost over two products in blocks (stricter)", "<= 1.3", f"{blocked:.2f}", verdict(blocked <= 1.3)),
            ("speed-up over Opacus ghost clipping", ">= 4", f"{ghost:.1f}", verdict(ghost >= 4)),
            ("speed-up over Opacus hooks", ">= 25", f"{hooks:.1f}", verdict(hooks >= 25)),
        ],
    )


def _print_difference(task: Task, private: PrivateHead) -> None:
    """At random weights, so that residuals and clipping factors differ from row to row."""
    index = task.batches[0]
    ours = private.clipped_sum(index)
    print()
    for name, theirs in (
        ("hooks", opacus_head.hook_sum(task, index)),
        ("ghost", opacus_head.ghost_sum(task, index)),
    ):
        difference = float((ours - theirs).abs().max())
        print(
            f"largest difference of our clipped sum from Opacus {name}: {difference:.1e} "
            f"({difference / float(theirs.abs().max()):.1e} of the largest entry)"
        )
