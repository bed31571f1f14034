"""One way to the clipped gradient sum of a network, in a process of its own: prints its seconds and peak memory.

On a GPU where there is one (its seconds and its memory), else on the CPU (CPU seconds, memory of the process).
"""

import json
import resource
import sys
import time
import warnings

import torch
from torch.nn import functional

from dpstudy.allocator import keep_freed_memory
from dpstudy.methods.record_gradients import RecordGradients, zeros
from dpstudy.models import networks

request = json.loads(sys.argv[1])
BATCH, COPIES, PHYSICAL = request["batch"], request["copies"], request["physical"]
SHAPE, CLASSES, CLIP = (3, 32, 32), 10, 1.0
torch.set_num_threads(request["threads"])
torch.manual_seed(0)
WHERE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
network = networks.build(request["network"], SHAPE, CLASSES).to(WHERE)
images = torch.randn(BATCH * COPIES, *SHAPE, device=WHERE)
labels = torch.randint(CLASSES, (BATCH,), device=WHERE)


def _parts():
    """Physical batches: images, labels of records, labels of images."""
    for start in range(0, BATCH, PHYSICAL):
        own = labels[start : start + PHYSICAL]
        yield images[start * COPIES : (start + len(own)) * COPIES], own, own.repeat_interleave(COPIES)


def plain():
    """Without privacy: the gradient of the same images."""
    total = [torch.zeros_like(value) for value in network.parameters()]
    for part, _, repeated in _parts():
        part = part.contiguous(memory_format=torch.channels_last)
        loss = functional.cross_entropy(network(part), repeated, reduction="sum")
        for sum_, gradient in zip(total, torch.autograd.grad(loss, list(network.parameters())), strict=True):
            sum_ += gradient
    return total


def ours():
    """dpstudy's engine, made once as for a training."""
    engine = RecordGradients(network, channels_last=networks.is_laid_channels_last(request["network"]))
    size = engine.micro_batch(images[:COPIES])

    def work():
        total = zeros(network)
        for start in range(0, BATCH, size):
            own = labels[start : start + size]
            part = images[start * COPIES : (start + len(own)) * COPIES]
            for name, value in engine.clipped_sum(part, own, "softmax", CLIP, COPIES).items():
                total[name] += value
        return list(total.values())

    return work


def vmap():
    """torch.func: a vectorised map over records of the gradient of a record's copies."""
    names, values = zip(*((name, value.detach()) for name, value in network.named_parameters()), strict=True)

    def loss(values, part, label):
        scores = torch.func.functional_call(network, dict(zip(names, values, strict=True)), (part,))
        return functional.cross_entropy(scores, label.expand(COPIES))

    each = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))
    total = [torch.zeros_like(value) for value in values]
    for part, own, _ in _parts():
        gradients = each(values, part.unflatten(0, (-1, COPIES)), own)
        norms = torch.stack([gradient.flatten(1).norm(dim=1) for gradient in gradients]).norm(dim=0)
        factors = (CLIP / norms).clamp_max(1.0)
        for sum_, gradient in zip(total, gradients, strict=True):
            sum_ += torch.einsum("n,n...->...", factors, gradient)
    return total


def _opacus(fast: bool, **options):
    from opacus.grad_sample import GradSampleModule, GradSampleModuleFastGradientClipping
    from opacus.optimizers import DPOptimizer, DPOptimizerFastGradientClipping
    from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping

    if fast:
        options |= {"max_grad_norm": CLIP, "use_ghost_clipping": True}
    module = (GradSampleModuleFastGradientClipping if fast else GradSampleModule)(
        network, loss_reduction="sum", strict=False, **options
    )
    optimiser = (DPOptimizerFastGradientClipping if fast else DPOptimizer)(
        torch.optim.SGD(network.parameters(), lr=0.0),
        noise_multiplier=0.0,
        max_grad_norm=CLIP,
        expected_batch_size=BATCH,
        loss_reduction="sum",
    )
    loss = torch.nn.CrossEntropyLoss(reduction="sum")
    if fast:
        loss = DPLossFastGradientClipping(module, optimiser, loss, loss_reduction="sum")

    def work():
        total = [torch.zeros_like(value) for value in network.parameters()]
        for part, own, _ in _parts():
            optimiser.zero_grad()
            loss(module(part), own).backward()
            optimiser.pre_step()
            for sum_, value in zip(total, network.parameters(), strict=True):
                sum_ += value.summed_grad
        return total

    return work


def now() -> float:
    """Seconds: of the clock once the GPU is done, or of this process on the CPU."""
    if WHERE.type == "cpu":
        return time.process_time()
    torch.cuda.synchronize()
    return time.perf_counter()


if __name__ == "__main__":
    keep_freed_memory()  # as our jobs do; for all ways, so that none is slowed down by page faults
    warnings.filterwarnings("ignore")
    task = {
        "plain": lambda: plain,
        "dpstudy": ours,
        "vmap": lambda: vmap,
        "Opacus hooks": lambda: _opacus(False),
        "Opacus functorch": lambda: _opacus(False, force_functorch=True),
        "Opacus ghost": lambda: _opacus(True),
    }[request["way"]]()
    total, seconds = task(), []
    for _ in range(request["repeats"]):
        started = now()
        task()
        seconds.append(now() - started)
    largest = max(float(value.abs().max()) for value in total)
    check = [float(value.double().square().sum()) for value in total]
    if WHERE.type == "cpu":
        gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    else:
        gib = torch.cuda.max_memory_allocated() / 2**30
    print(json.dumps({"seconds": seconds, "gib": gib, "check": sum(check) ** 0.5, "largest": largest}))
