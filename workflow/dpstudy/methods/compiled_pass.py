"""The passes through a network as one compiled piece (torch.compile). On the CPU that we tried it was slower."""

import torch
from torch import nn

from dpstudy.errors import StudyError

BACKEND = "inductor"


class CompiledPass:
    """A forward pass that also gives what layers got, and zeros that were added to what they gave.

    The gradient with respect to such zeros is that with respect to the layer's output, which inside a compiled piece
    has no tensor of its own.

    Args:
        network: whose layers' hooks this object keeps.
        layers: name -> layer.
    """

    def __init__(self, network: nn.Module, layers: dict[str, nn.Module]):
        self._network = network
        self._inputs: dict[str, torch.Tensor] | None = None
        self._taps: dict[str, torch.Tensor] = {}
        self._outputs: dict[str, torch.Tensor] = {}
        for name, layer in layers.items():
            layer.register_forward_hook(self._hook(name))
        self._run = torch.compile(self._pass, backend=BACKEND)

    def _hook(self, name: str):
        def hook(_layer, inputs, output):
            if self._inputs is None:
                return None  # another pass than ours
            self._inputs[name] = inputs[0]  # backward passes need it too: no network changes it later
            if name in self._taps:
                return output + self._taps[name]
            if name in self._outputs:
                raise StudyError(f"network layer {name!r} is used twice in one pass; no rule covers shared weights")
            self._outputs[name] = output  # the first pass, which is not compiled, finds shapes and types
            return None

        return hook

    def _pass(self, records: torch.Tensor, taps: dict[str, torch.Tensor]):
        self._inputs, self._taps = {}, taps
        scores, inputs = self._network(records), self._inputs
        self._inputs, self._taps = None, {}
        return scores, inputs

    def __call__(self, records: torch.Tensor) -> tuple[torch.Tensor, dict[str, torch.Tensor], dict[str, torch.Tensor]]:
        """Scores, layer -> input (without a graph), and layer -> the zeros, for (n, ...) records."""
        if not self._outputs:
            with torch.no_grad():
                self._pass(records[:1], {})
        taps = {
            name: torch.zeros(
                len(records), *output.shape[1:], dtype=output.dtype, device=output.device
            ).requires_grad_()
            for name, output in self._outputs.items()
        }
        scores, inputs = self._run(records, taps)
        return scores, {name: value.detach() for name, value in inputs.items()}, taps
