"""Forward passes that hide inner tensors, compiled or mapped over records, made to return layer inputs."""

import contextlib
from collections.abc import Iterator

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from dpstudy.core.errors import StudyError
from dpstudy.methods.network_refusals import ALONE

BACKEND = "inductor"
Tensors = dict[str, torch.Tensor]


class TappedPass:
    """A forward pass that also returns the layers' inputs, and zeros that were added to the layers' outputs.

    The gradient with respect to such zeros is that with respect to the layer's output, which inside such a pass has no
    tensor of its own. The pass is

    compiled (torch.compile), which on the CPUs that we tried was slower; or
    apart: a vectorised map over records (torch.func.vmap). The network's code sees one record at a time, its K copies,
        and parameters in their own shape, of which each record has a copy: so the gradients of the copies are exact
        whatever the code does with them.

    Args:
        network: where it is compiled, its layers' hooks stay.
        layers: name -> layer.
        direct: name -> parameter that the network uses outside of these; for passes apart.
        compile: or apart.
    """

    def __init__(self, network: nn.Module, layers: dict[str, nn.Module], direct: Tensors, compile: bool):
        self._network, self._layers, self._direct, self._compiled = network, layers, direct, compile
        self._inputs: Tensors | None = None
        self._taps: Tensors = {}
        self._outputs: Tensors = {}  # of the first record
        self._run = torch.compile(self._pass, backend=BACKEND) if compile else torch.func.vmap(self._pass)
        if compile:
            self._hook_layers()

    def _hook_layers(self) -> list:
        return [layer.register_forward_hook(self._hook(name)) for name, layer in self._layers.items()]

    def _hook(self, name: str):
        def hook(_layer, inputs, output):
            if self._inputs is None:
                return None  # a forward pass that this class did not start
            if name in self._inputs:
                raise StudyError(
                    f"network layer {name!r} is used twice in one pass; no rule covers shared weights; {ALONE}"
                )
            # Compiled backward passes need it too: no network changes it later.
            self._inputs[name] = inputs[0] if self._compiled else inputs[0].clone()
            if name in self._taps:
                return output + self._taps[name]
            self._outputs[name] = output  # a first, plain pass finds the outputs' shapes and dtypes
            return None

        return hook

    def _pass(self, records: torch.Tensor, direct: Tensors, taps: Tensors):
        self._inputs, self._taps = {}, taps
        scores = torch.func.functional_call(self._network, direct, (records,)) if direct else self._network(records)
        inputs, self._inputs, self._taps = self._inputs, None, {}
        return scores, inputs

    @contextlib.contextmanager
    def _hooked(self) -> Iterator[None]:
        hooks = [] if self._compiled else self._hook_layers()
        try:
            yield
        finally:
            self._inputs, self._taps = None, {}
            for hook in hooks:
                hook.remove()

    def __call__(self, records: torch.Tensor, copies: int) -> tuple[torch.Tensor, Tensors, Tensors, Tensors]:
        """Scores, layer -> input (without a graph), layer -> zeros, and parameter -> (n, ...) copies of it by record.

        All for (n copies, ...) records.
        """
        rows = 1 if self._compiled else copies  # at a time
        count = len(records) // rows
        with self._hooked():
            if not self._outputs:
                with torch.no_grad():
                    self._pass(records[:rows], {}, {})
            taps = {
                name: torch.zeros(
                    count * len(output), *output.shape[1:], dtype=output.dtype, device=output.device
                ).requires_grad_()
                for name, output in self._outputs.items()
            }
            direct = {
                name: value.detach().expand(count, *value.shape).clone().requires_grad_()
                for name, value in self._direct.items()
            }
            if self._compiled:
                scores, inputs = self._run(records, {}, taps)
            else:
                split = {name: value.unflatten(0, (count, -1)) for name, value in taps.items()}
                with sdpa_kernel(SDPBackend.MATH):  # vmap does not support the other attention kernels
                    scores, inputs = self._run(records.unflatten(0, (count, rows)), direct, split)
                scores, inputs = scores.flatten(0, 1), {name: value.flatten(0, 1) for name, value in inputs.items()}
        return scores, {name: value.detach() for name, value in inputs.items()}, taps, direct
