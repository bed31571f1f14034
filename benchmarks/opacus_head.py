"""The linear head's private epoch done by Opacus, by hooks (per-example gradients) and by ghost clipping."""

import warnings

import torch
from opacus.grad_sample import GradSampleModule, GradSampleModuleFastGradientClipping
from opacus.optimizers import DPOptimizer, DPOptimizerFastGradientClipping
from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping

from benchmarks import linear_head as shared

warnings.filterwarnings("ignore", message="Full backward hook is firing")  # features need no gradient


def _hooks(task, noise_multiplier: float):
    module = GradSampleModule(task.module(), loss_reduction="sum")
    inner = torch.optim.SGD(module.parameters(), lr=shared.RATE / shared.BATCH, momentum=shared.MOMENTUM)
    optimiser = DPOptimizer(
        inner,
        noise_multiplier=noise_multiplier,
        max_grad_norm=shared.CLIP,
        expected_batch_size=shared.BATCH,
        loss_reduction="sum",
    )
    return module, optimiser, torch.nn.CrossEntropyLoss(reduction="sum")


def _ghost(task, noise_multiplier: float):
    module = GradSampleModuleFastGradientClipping(
        task.module(), max_grad_norm=shared.CLIP, use_ghost_clipping=True, loss_reduction="sum"
    )
    inner = torch.optim.SGD(module.parameters(), lr=shared.RATE / shared.BATCH, momentum=shared.MOMENTUM)
    optimiser = DPOptimizerFastGradientClipping(
        inner,
        noise_multiplier=noise_multiplier,
        max_grad_norm=shared.CLIP,
        expected_batch_size=shared.BATCH,
        loss_reduction="sum",
    )
    criterion = torch.nn.CrossEntropyLoss(reduction="sum")
    return module, optimiser, DPLossFastGradientClipping(module, optimiser, criterion, loss_reduction="sum")


def _epoch(task, batches, made) -> None:
    module, optimiser, loss = made
    for index in batches:
        optimiser.zero_grad()
        loss(module(task.features[index]), task.labels[index]).backward()
        optimiser.step()


def hook_epoch(task, batches) -> None:
    """Steps on `batches` with per-example gradients."""
    _epoch(task, batches, _hooks(task, shared.NOISE_MULTIPLIER))


def ghost_epoch(task, batches) -> None:
    """Steps on `batches` with ghost clipping."""
    _epoch(task, batches, _ghost(task, shared.NOISE_MULTIPLIER))


def _clipped_sum(task, index, made) -> torch.Tensor:
    module, optimiser, loss = made
    linear = module._module
    with torch.no_grad():
        linear.weight.copy_(task.weights[:, :-1])
        linear.bias.copy_(task.weights[:, -1])
    optimiser.zero_grad()
    loss(module(task.features[index]), task.labels[index]).backward()
    optimiser.pre_step()  # clips and sums; the noise has multiplier 0
    return torch.cat([linear.weight.summed_grad, linear.bias.summed_grad[:, None]], 1)


def hook_sum(task, index) -> torch.Tensor:
    """The clipped sum (m, d + 1) of one batch at the task's random weights, by hooks."""
    return _clipped_sum(task, index, _hooks(task, 0.0))


def ghost_sum(task, index) -> torch.Tensor:
    """The clipped sum (m, d + 1) of one batch at the task's random weights, by ghost clipping."""
    return _clipped_sum(task, index, _ghost(task, 0.0))
