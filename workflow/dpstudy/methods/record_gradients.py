"""Sums of clipped per-record gradients of a network, without a backward pass for each record.

One backward pass gives the gradients with respect to the outputs of every layer with parameters. Those and the layers'
inputs hold each record's own gradient: layer_rules.py says how to get its norm, and the sum of all records' gradients
weighted by their clipping factors, layer by layer (Goodfellow 2015; book-keeping, Bu et al. 2023). Parameters that
stand outside such layers are given to each record as a copy of its own (tapped_pass.py).
"""

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, field

import torch
from torch import nn
from torch.nn import functional

from dpstudy.core.errors import StudyError
from dpstudy.methods.bounds import hold
from dpstudy.methods.layer_fallback import Formed, Recomputed
from dpstudy.methods.layer_rules import OuterProducts, Rule, rule_of
from dpstudy.methods.network_memory import LARGEST_IMAGES, LIMIT_BYTES
from dpstudy.methods.network_refusals import ALONE, check_layers, check_scores, check_ties, failures_of
from dpstudy.methods.record_sums import clipping_factors
from dpstudy.methods.tapped_pass import TappedPass

LOSSES = ("softmax", "sigmoid")
PRECISIONS = ("float32", "bfloat16")
_ON_A_GPU = 4096  # images of a micro-batch, at most
_MEASURED_EVERY = 64  # calls
_SHARE_OF_GPU = 0.5  # of its free memory


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
    """Clipped gradient sums of one network with respect to its parameters that require gradients.

    Args:
        network: maps (n, ...) to (n, m) scores, every record by itself.
        precision: "float32", or "bfloat16" for the passes through the network; norms and clipping are of gradients in
            the parameters' own type either way, so that what is summed is bounded as it is.
        compile: run the passes as one compiled piece (torch.compile).
        channels_last: lay records, and where it can be done what layers give, with channels innermost in memory: faster
            where the network's code does not mind (`.view` does).
        name: of the network, for messages.

    Raises:
        StudyError: a layer mixes records (batch normalisation), draws at random or changes state in a pass, or has
            parameters that no rule covers.
    """

    def __init__(
        self,
        network: nn.Module,
        precision: str = "float32",
        compile: bool = False,
        channels_last: bool = False,
        name: str = "",
    ):
        self._network, self._precision, self._name = network, precision, name
        self._channels_last = channels_last
        layers = dict(network.named_modules())
        check_layers(network)
        self._rules: dict[str, Rule] = {}
        direct: dict[str, torch.Tensor] = {}
        self._shared, self._calls = False, 0
        for name, layer in layers.items():
            trained = {key: value for key, value in layer.named_parameters(recurse=False) if value.requires_grad}
            if not trained:
                continue
            if any(True for _ in layer.children()) and rule_of(layer) is None:
                direct |= {f"{name}.{key}".removeprefix("."): value for key, value in trained.items()}
            else:
                self._rules[name] = rule_of(layer) or Recomputed(layer=layer)
        check_ties(network)
        self._layers = {name: layers[name] for name in self._rules}
        if compile and direct:
            raise StudyError(f"network parameter {min(direct)!r}: stands outside a layer; leave `compile` out")
        self._compile, self._direct = compile, direct
        self._tapped = TappedPass(network, self._layers, direct, compile) if compile or direct else None

    def _forward(self, records: torch.Tensor, copies: int) -> "_Pass":
        """One forward pass through the network, with the tensors that the layers' rules need."""
        done = _Pass()
        autocast = torch.autocast(records.device.type, torch.bfloat16, enabled=self._precision == "bfloat16")
        records = _channels_last(records) if self._channels_last else records.contiguous()
        with self._failures(), autocast:
            if self._tapped:
                done.scores, done.inputs, done.outputs, done.direct = self._tapped(records, copies)
            else:
                with self._kept(done):
                    done.scores = self._network(records)
        if unused := self._layers.keys() - done.outputs.keys():
            self._use_directly(unused)
            return self._forward(records, copies)
        check_scores(done.scores, records, self._name)
        if not self._shared and done.changed():
            self._shared = True  # an operation changes a layer's input or output in place: give it copies
            return self._forward(records, copies)
        return done

    def _use_directly(self, names: Set[str]) -> None:
        """Treat parameters of layers that the network never calls as parameters outside of layers."""
        if self._compile:
            raise StudyError(f"network layer {min(names)!r}: its parameters are not used in a pass of its own; {ALONE}")
        for name in names:
            named = self._layers.pop(name).named_parameters(name, recurse=False)
            self._direct |= {key: value for key, value in named if value.requires_grad}
            del self._rules[name]
        self._tapped = TappedPass(self._network, self._layers, self._direct, False)

    def _failures(self) -> contextlib.AbstractContextManager:
        return failures_of(self._name, f"; {ALONE}" if self._direct else "")

    @contextlib.contextmanager
    def _kept(self, done: "_Pass") -> Iterator[None]:
        """A context that records the inputs and outputs of layers in a pass."""

        def keeper(name: str) -> Callable:
            def keep(_layer, inputs, output) -> torch.Tensor:
                if name in done.outputs:
                    raise StudyError(
                        f"network layer {name!r} is used twice in one pass; no rule covers shared weights; {ALONE}"
                    )
                given, output = inputs[0], _channels_last(output) if self._channels_last else output
                done.inputs[name] = (given.clone() if self._shared else given).detach()
                done.outputs[name] = output
                done.versions[name] = given._version, output._version
                return output.clone() if self._shared else output

            return keep

        hooks = [layer.register_forward_hook(keeper(name)) for name, layer in self._layers.items()]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def micro_batch(self, record: torch.Tensor) -> int:
        """The number of records to take at a time, for speed, given one record's (K, ...) copies; it changes no result.

        As many as memory is for: each call of a layer then does more (python -m benchmarks layers measures it). What a
        record takes is estimated from above, but for a network whose single record takes more than the bound.
        """
        copies, each = len(record), self.bytes_of(record)
        if record.device.type == "cuda":
            free = _SHARE_OF_GPU * torch.cuda.mem_get_info(record.device)[0]
            return max(1, min(_ON_A_GPU // copies, int(free / each)))
        return max(1, min(LARGEST_IMAGES // copies, int(LIMIT_BYTES / each)))

    def bytes_of(self, record: torch.Tensor) -> float:
        """An upper bound on `clipped_sum`'s bytes per record, given its (K, ...) copies, if all layers are trained."""
        done = self._forward(record, len(record))
        tensors = {name: (done.inputs[name], done.outputs[name]) for name in self._rules}
        kept = sum(rule.held(*tensors[name]) for name, rule in self._rules.items())
        passed = sum(tensor.numel() for both in tensors.values() for tensor in both)
        gradient = sum(value.numel() for value in self._network.parameters() if value.requires_grad)
        if record.device.type == "cuda":  # a convolution's way of its own, and its workspace
            return record.element_size() * (gradient + 4 * (kept + passed))
        return record.element_size() * (1.5 * (gradient + kept) + (3 if self._direct else 2) * passed)

    def clipped_sum(
        self,
        records: torch.Tensor,
        labels: torch.Tensor,
        loss: str,
        norm: float,
        copies: int = 1,
        part: torch.Tensor | None = None,
    ) -> dict[str, torch.Tensor]:
        """The private sum of gradients, each clipped to Euclidean norm `norm` over all parameters together.

        Args:
            records: (n copies, ...): the augmented copies of a record stand together.
            labels: (n,) or (n, m).
            loss: one of LOSSES; the losses of a record's copies are averaged before its gradient is clipped
                (de2022, Eq. 4).
            norm: C'; infinite: no clipping.
            copies: K.
            part: (n,) what contributions are multiplied by, such as booleans, which records take part; or None: 1.

        Returns:
            Parameter name -> sum, float64, with the rounding that record_sums.py bounds. A record whose gradient is not
            finite contributes zero.

        Raises:
            StudyError: the network's code fails, or is none that the engine knows.
        """
        if not len(records):
            return zeros(self._network)
        labels = labels.repeat_interleave(copies, 0) if copies > 1 else labels
        done = self._forward(records, copies)
        with self._failures():
            total = record_losses(done.scores.to(records.dtype), labels, loss).sum() / copies
            gradients = torch.autograd.grad(total, [*done.outputs.values(), *done.direct.values()])
        with torch.no_grad():
            return self._sums(done, gradients, norm, copies, records, part)

    def _sums(self, done: "_Pass", gradients, norm: float, copies: int, records: torch.Tensor, part):
        """The clipped sums: norms, clipping factors and weighted sums, layer by layer."""
        rules: dict[str, Rule | Formed] = {}
        count = len(records) // copies
        with self._failures():
            for (name, inputs), gradient in zip(done.inputs.items(), gradients, strict=False):
                # in a map over records, all rows of a layer's input are one record's, as of an image cut into windows
                rows = len(inputs) // count if self._direct else copies
                rule = self._rules[name]
                halved = records.is_cuda and isinstance(rule, OuterProducts)  # its products accept bfloat16
                gradient = gradient if halved else gradient.to(records.dtype)
                rules[f"{name}."] = rule.take(inputs.to(gradient.dtype), gradient, rows)
        if done.direct:
            direct = [gradient.to(records.dtype) for gradient in gradients[len(done.inputs) :]]
            rules[""] = Formed(dict(zip(done.direct, direct, strict=True)))
        squares = _squared_norms(rules, count).sum(0)
        factors = clipping_factors(squares.sqrt(), norm)
        if part is not None:
            factors = factors * part
        if self._calls % _MEASURED_EVERY == 0 and math.isfinite(norm):
            _hold(rules, factors, squares, norm)
        self._calls += 1
        return _summed(rules, factors)


def zeros(network: nn.Module) -> dict[str, torch.Tensor]:
    """Trained parameter -> float64 zeros: the sum over no records."""
    trained = ((name, value) for name, value in network.named_parameters() if value.requires_grad)
    return {name: torch.zeros_like(value, dtype=torch.float64) for name, value in trained}


def _squared_norms(rules: Mapping[str, Rule | Formed], count: int) -> torch.Tensor:
    """(layers, count) squared norms of each record's gradient of each layer.

    Raises:
        StudyError: a layer saw another number of records than the network was given.
    """
    squares_by_layer = {name: rule.squared_norms() for name, rule in rules.items()}
    for name, squares in squares_by_layer.items():
        if squares.shape != (count,):
            layer = f"layer {name.removesuffix('.')!r}" if name else "parameters outside layers"
            raise StudyError(
                f"network {layer}: sees {len(squares)} records where the network has {count}: it takes parts of a "
                "record for records of their own, or several for one, so that no record's gradient can be told apart; "
                f"{ALONE}"
            )
    return torch.stack([*squares_by_layer.values()])


def _summed(rules: Mapping[str, Rule | Formed], factors: torch.Tensor) -> dict[str, torch.Tensor]:
    sums = {f"{name}{key}": value for name, rule in rules.items() for key, value in rule.sums(factors).items()}
    return {name.removeprefix("."): value for name, value in sums.items()}


def _hold(rules: Mapping[str, Rule | Formed], factors: torch.Tensor, squares: torch.Tensor, norm: float) -> None:
    """Check the largest contribution's norm, by a sum over its record alone."""
    lengths = (squares.sqrt() * factors).nan_to_num(0.0)
    alone = torch.zeros_like(factors)
    alone[lengths.argmax()] = factors[lengths.argmax()]
    total = torch.stack([value.square().sum() for value in _summed(rules, alone).values()]).sum().sqrt()
    hold("clipped gradients of a network", total[None], norm)


@dataclass
class _Pass:
    """The results of a pass: scores, layer -> input and output, and parameters of which each record had a copy."""

    scores: torch.Tensor = field(default_factory=lambda: torch.empty(0))
    inputs: dict[str, torch.Tensor] = field(default_factory=dict)
    outputs: dict[str, torch.Tensor] = field(default_factory=dict)
    direct: dict[str, torch.Tensor] = field(default_factory=dict)
    versions: dict[str, tuple[int, int]] = field(default_factory=dict)

    def changed(self) -> bool:
        """Whether a tensor was changed in place after it was recorded, and is no longer a layer's input or output."""
        return any(
            (self.inputs[name]._version, self.outputs[name]._version) != noted for name, noted in self.versions.items()
        )


def _channels_last(maps: torch.Tensor) -> torch.Tensor:
    """Maps (n, C, H, W) in channels-last memory format, with which poolings and layer rules are faster."""
    return maps.contiguous(memory_format=torch.channels_last) if maps.ndim == 4 else maps
