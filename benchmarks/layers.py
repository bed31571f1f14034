"""How the engine of deep networks chooses: the two ways to a convolution's per-record gradients, and micro-batches."""

from collections.abc import Iterator
from unittest import mock

import torch
from torch import nn

from benchmarks.timing import alternate, medians, table, title, verdict
from dpstudy.core.allocator import keep_freed_memory
from dpstudy.methods import layer_rules
from dpstudy.methods.layer_rules import OuterProducts, rule_of
from dpstudy.methods.record_gradients import RecordGradients
from dpstudy.models import networks

NETWORKS = {  # shape of a record, and the most images at once that are tried
    "wrn-16-4": ((3, 32, 32), 64),
    "nf-resnet-50": ((3, 64, 64), 16),
    "tanh-28": ((1, 28, 28), 256),
    "tanh-32": ((3, 32, 32), 256),
    "scatter-28": ((81, 7, 7), 256),
    "scatter-32": ((243, 8, 8), 256),
}
COPIES = (1, 4)
CLASSES, CLIP = 10, 1.0
PENALTY = 1.25  # times the faster way, at most, over all convolutions of a network; and times the fastest size


def run(threads: int, repeats: int) -> None:
    """Print both tables."""
    title("(l) How convolutions and micro-batches are chosen")
    torch.set_num_threads(threads)
    keep_freed_memory()
    print(f"{threads} thread(s), CPU seconds, medians of {repeats}.\n")
    for name, (shape, images) in NETWORKS.items():
        torch.manual_seed(0)
        network = networks.build(name, shape, CLASSES)
        for copies in COPIES:
            convolutions(name, network, shape, copies, repeats)
            micro_batches(name, network, torch.randn(images, *shape), copies, repeats)


def convolutions(name: str, network: nn.Module, shape: tuple[int, ...], copies: int, repeats: int) -> None:
    """Each kind of convolution by products of patches and by a convolution a record; `*` is what is taken."""
    size = RecordGradients(network).micro_batch(torch.randn(copies, *shape))
    rows, taken, best = [], 0.0, 0.0
    for (text, layer, inputs, outputs), count in distinct(network, torch.randn(size * copies, *shape)).items():
        ways = {"patches": False, "convolution": True}
        tasks = {way: gradients_of(layer, inputs, outputs, copies, large) for way, large in ways.items()}
        seconds = medians(alternate(tasks, repeats))
        chosen = "convolution" if layer_rules._large(layer, outputs, copies) else "patches"
        taken, best = taken + count * seconds[chosen], best + count * min(seconds.values())
        each = [f"{1e6 * seconds[way] / size:,.0f}{' *' if way == chosen else '  '}" for way in ways]
        rows.append((text, count, *each, f"{seconds[chosen] / min(seconds.values()):.2f}"))
    print(f"{name}, K = {copies}, {size} records at once: microseconds a record of one convolution")
    table(("convolution", "layers", "patches", "convolution", "x faster way"), rows)
    print(f"all layers: {taken / best:.2f} times the faster way of each: {verdict(taken <= PENALTY * best)}\n")


def distinct(network: nn.Module, images: torch.Tensor) -> dict[tuple, int]:
    """(description, layer, inputs, outputs) of one convolution of each kind -> how many there are of it."""
    seen: dict[str, tuple] = {}
    counts: dict[str, int] = {}

    def keep(layer: nn.Module, inputs: tuple, outputs: torch.Tensor) -> None:
        kernel = "x".join(map(str, layer.kernel_size))
        groups = f", {layer.groups} groups" if layer.groups > 1 else ""
        sides = f"{inputs[0].shape[2]} to {outputs.shape[2]} a side"
        text = f"{layer.in_channels} -> {layer.out_channels}, {kernel}, {sides}{groups}"
        seen.setdefault(text, (text, layer, channels_last(inputs[0]), channels_last(outputs)))
        counts[text] = counts.get(text, 0) + 1

    layers = [layer for layer in network.modules() if isinstance(rule_of(layer), OuterProducts)]
    hooks = [layer.register_forward_hook(keep) for layer in layers if isinstance(layer, nn.Conv2d)]
    with torch.no_grad():
        network(channels_last(images))
    for hook in hooks:
        hook.remove()
    return {kind: counts[text] for text, kind in seen.items()}


def gradients_of(layer: nn.Conv2d, inputs: torch.Tensor, outputs: torch.Tensor, copies: int, large: bool):
    """A task: norms and the weighted sum of one layer, in one of the two ways."""
    rule, gradients = rule_of(layer), torch.randn_like(outputs)
    factors = torch.rand(len(inputs) // copies, dtype=torch.float64)

    def task() -> None:
        with mock.patch.object(layer_rules, "_large", lambda *_: large), torch.no_grad():
            held = rule.take(inputs, gradients, copies)
            held.squared_norms()
            held.sums(factors)

    return task


def micro_batches(name: str, network: nn.Module, images: torch.Tensor, copies: int, repeats: int) -> None:
    """Time of the whole clipped sum by how many records are taken at once."""
    laid = networks.is_laid_channels_last(name)
    engine, records = RecordGradients(network, channels_last=laid), len(images) // copies
    labels = torch.randint(CLASSES, (records,))
    own = min(records, engine.micro_batch(images[:copies]))
    sizes = sorted({own} | {2**power for power in range(records.bit_length())})

    def task(size: int):
        def work() -> None:
            for part in batches(images, labels, size, copies):
                engine.clipped_sum(*part, "softmax", CLIP, copies)

        return work

    seconds = medians(alternate({str(size): task(size) for size in sizes}, repeats))
    fastest = min(seconds.values())
    print(f"{name}, K = {copies}: milliseconds a record by records at once, {own} are taken")
    table([str(size) for size in sizes], [[f"{1e3 * seconds[str(size)] / records:.2f}" for size in sizes]])
    ratio = seconds[str(own)] / fastest
    print(f"{ratio:.2f} times the fastest: {verdict(ratio <= PENALTY)}\n")


def batches(images: torch.Tensor, labels: torch.Tensor, size: int, copies: int) -> Iterator[tuple]:
    """Images and labels of `size` records at a time."""
    return zip(images.split(size * copies), labels.split(size), strict=True)


def channels_last(maps: torch.Tensor) -> torch.Tensor:
    """As the engine lays maps out."""
    return maps.contiguous(memory_format=torch.channels_last)
