"""Sums of clipped per-record gradients of a network, without a backward pass for each record.

One backward pass gives the gradients with respect to the outputs of every layer with parameters. Those and the layers'
inputs hold each record's own gradient: layer_rules.py says how to get its norm, and the sum of all records' gradients
weighted by their clipping factors, layer by layer (Goodfellow 2015; book-keeping, Bu et al. 2023).
"""

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

from dpstudy.errors import StudyError
from dpstudy.methods.layer_rules import Rule, rule_of

LOSSES = ("softmax", "sigmoid")
_CACHED = 2_500_000  # numbers of one layer that a processor's caches hold: 10 MB
_HELD = 1 << 27  # numbers of whole gradients that are held: 0.5 GB
_SMALLEST, _LARGEST, _ON_A_GPU = 16, 128, 512  # images


def record_losses(scores: torch.Tensor, labels: torch.Tensor, loss: str) -> torch.Tensor:
    """(n,) losses of (n, m) scores: "softmax" cross-entropy, or "sigmoid" binary cross-entropy, the mean over classes.

    Labels are class indices (n,) or zeros and ones (n, m); "softmax" takes the latter divided by their number.
    """
    if loss == "softmax":
        if labels.ndim == 2:
            labels = labels / labels.sum(1, keepdim=True).clamp_min(1)
        return functional.cross_entropy(scores, labels, reduction="none")
    if labels.ndim == 1:
        labels = functional.one_hot(labels, scores.shape[1])
    return functional.binary_cross_entropy_with_logits(scores, labels.to(scores.dtype), reduction="none").mean(1)


class RecordGradients:
    """Clipped gradient sums of one network.

    Args:
        network: maps (n, ...) to (n, m) scores, every record by itself.

    Raises:
        StudyError: a layer mixes records (batch normalisation), or has parameters and no rule.
    """

    def __init__(self, network: nn.Module):
        self._network = network
        layers = dict(network.named_modules())
        for name, layer in layers.items():
            if isinstance(layer, nn.modules.batchnorm._NormBase):
                raise StudyError(
                    f"network layer {name!r}: {type(layer).__name__} mixes the records of a batch, so that no record's "
                    "gradient can be bounded; use group normalisation"
                )
        self._layers = {name: layer for name, layer in layers.items() if _has_parameters(layer)}
        self._rules = {name: rule_of(name, layer) for name, layer in self._layers.items()}

    def _forward(self, records: torch.Tensor) -> tuple[torch.Tensor, dict[str, tuple[torch.Tensor, torch.Tensor]]]:
        """The scores, and layer -> its (input, output)."""
        seen, hooks = {}, []

        def keeper(name: str) -> Callable:
            def keep(_layer, inputs, output) -> torch.Tensor:
                if name in seen:
                    raise StudyError(f"network layer {name!r} is used twice in one pass; no rule covers shared weights")
                output = _channels_last(output)
                seen[name] = inputs[0].detach(), output
                return output

            return keep

        try:
            hooks = [layer.register_forward_hook(keeper(name)) for name, layer in self._layers.items()]
            return self._network(records), seen
        finally:
            for hook in hooks:
                hook.remove()

    def micro_batch(self, record: torch.Tensor) -> int:
        """How many records like this one, (K, ...) copies, to take at a time, for speed; no result depends on it."""
        copies = len(record)
        if record.device.type != "cpu":
            return max(1, _ON_A_GPU // copies)
        _, seen = self._forward(_channels_last(record))
        numbers = (
            self._rules[name].held(inputs, output) + inputs.numel() + output.numel()
            for name, (inputs, output) in seen.items()
        )
        gradient = sum(value.numel() for value in self._network.parameters())
        records = max(_SMALLEST // copies, _CACHED // max(numbers, default=1))
        return max(1, min(_LARGEST // copies, _HELD // gradient, records))

    def clipped_sum(
        self,
        records: torch.Tensor,
        labels: torch.Tensor,
        loss: str,
        norm: float,
        copies: int = 1,
        part: torch.Tensor | None = None,
    ) -> dict[str, torch.Tensor]:
        """The private sum of gradients, each scaled down to Euclidean norm `norm` over all parameters together.

        Args:
            records: (n copies, ...): the augmented copies of a record stand together.
            labels: (n,) or (n, m).
            loss: one of LOSSES; the losses of a record's copies are averaged before its gradient is clipped
                (de2022, Eq. 4).
            norm: C; infinite: no clipping.
            copies: K.
            part: (n,) booleans, which records take part; or None: all.

        Returns:
            Parameter name -> sum, float32. A record whose gradient is not finite contributes zero.
        """
        if not len(records):
            return {name: torch.zeros_like(value) for name, value in self._network.named_parameters()}
        labels = labels.repeat_interleave(copies, 0) if copies > 1 else labels
        scores, seen = self._forward(_channels_last(records))
        total = record_losses(scores, labels, loss).sum() / copies
        backward = torch.autograd.grad(total, [output for _, output in seen.values()])
        with torch.no_grad():
            return self._sums(seen, backward, norm, copies, part)

    def _sums(self, seen, backward, norm: float, copies: int, part: torch.Tensor | None) -> dict[str, torch.Tensor]:
        rules: dict[str, Rule] = {
            name: self._rules[name].take(inputs, gradients, copies)
            for (name, (inputs, _)), gradients in zip(seen.items(), backward, strict=True)
        }
        squares = torch.stack([rule.squared_norms() for rule in rules.values()]).sum(0)
        factors = clipping_factors(squares.sqrt(), norm)
        if part is not None:
            factors = factors * part
        sums = {f"{name}.{key}": value for name, rule in rules.items() for key, value in rule.sums(factors).items()}
        return {name.removeprefix("."): value for name, value in sums.items()}


def _channels_last(maps: torch.Tensor) -> torch.Tensor:
    """The same values, maps (n, C, H, W) with channels innermost in memory: poolings and layer rules are faster so."""
    return maps.contiguous(memory_format=torch.channels_last) if maps.ndim == 4 else maps


def clipping_factors(norms: torch.Tensor, bound: float) -> torch.Tensor:
    """(n,) factors min(1, bound/norm); 0 where the norm is not finite."""
    factors = (bound / norms).clamp_max(1.0) if bound < float("inf") else torch.ones_like(norms)
    return torch.where(torch.isfinite(norms), factors.nan_to_num(1.0), 0.0)


def _has_parameters(layer: nn.Module) -> bool:
    return next(layer.parameters(recurse=False), None) is not None
