"""Ways to the clipped gradient sum of a network: ours, and those it is measured against."""

import contextlib
from collections.abc import Callable, Iterator

import torch
from torch.nn import functional

from dpstudy.methods.record_gradients import RecordGradients, zeros
from dpstudy.models import networks

CLIP = 1.0


class Ways:
    """One network and one batch of drawn images, on the GPU where there is one.

    Args:
        copies: of each record, which stand together.
        physical: how many records each way but ours takes at a time.
        precision: "float32", "tf32" for its products, or "bfloat16" in the passes through the network.
        compiled: the passes are one compiled piece.
    """

    def __init__(
        self,
        network: str,
        batch: int,
        copies: int = 1,
        physical: int = 32,
        precision: str = "float32",
        compiled: bool = False,
        shape: tuple[int, int, int] = (3, 32, 32),
        classes: int = 10,
    ):
        torch.manual_seed(0)
        self.where = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.name, self.batch, self.copies, self.physical = network, batch, copies, physical
        self.network = networks.build(network, shape, classes).to(self.where)
        self.images = torch.randn(batch * copies, *shape, device=self.where)
        self.labels = torch.randint(classes, (batch,), device=self.where)
        self.precision, self._compiled = precision, compiled
        if self.where.type == "cuda":
            torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"

    def __getitem__(self, way: str) -> Callable[[], list[torch.Tensor]]:
        """What computes the sums, made once as for a training."""
        return {
            "plain": self._plain,
            "dpstudy": self._ours,
            "vmap": self._vmap,
            "Opacus hooks": lambda: self._opacus(False),
            "Opacus functorch": lambda: self._opacus(False, force_functorch=True),
            "Opacus ghost": lambda: self._opacus(True),
        }[way]()

    def _passes(self) -> contextlib.AbstractContextManager:
        return torch.autocast(self.where.type, torch.bfloat16, enabled=self.precision == "bfloat16")

    def _parts(self) -> Iterator[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
        """Physical batches: images, labels of records, labels of images."""
        for start in range(0, self.batch, self.physical):
            own = self.labels[start : start + self.physical]
            images = self.images[start * self.copies : (start + len(own)) * self.copies]
            yield images, own, own.repeat_interleave(self.copies)

    def _plain(self):
        """Without privacy: the gradient of the same images."""
        passed = torch.compile(self.network) if self._compiled else self.network

        def work():
            total = [torch.zeros_like(value) for value in self.network.parameters()]
            for part, _, repeated in self._parts():
                part = part.contiguous(memory_format=torch.channels_last)
                with self._passes():
                    loss = functional.cross_entropy(passed(part), repeated, reduction="sum")
                found = torch.autograd.grad(loss, list(self.network.parameters()))
                for sum_, gradient in zip(total, found, strict=True):
                    sum_ += gradient
            return total

        return work

    def _ours(self):
        precision = "bfloat16" if self.precision == "bfloat16" else "float32"
        laid = networks.is_laid_channels_last(self.name)
        options = {"compile": self._compiled, "channels_last": laid}
        size = RecordGradients(self.network, precision, channels_last=laid).micro_batch(self.images[: self.copies])
        engine = RecordGradients(self.network, precision, **options)

        def work():
            total = zeros(self.network)
            for start in range(0, self.batch, size):
                own = self.labels[start : start + size]
                part = self.images[start * self.copies : (start + len(own)) * self.copies]
                for name, value in engine.clipped_sum(part, own, "softmax", CLIP, self.copies).items():
                    total[name] += value
            return list(total.values())

        return work

    def _vmap(self):
        """torch.func: a vectorised map over records of the gradient of a record's copies."""
        named = ((name, value.detach()) for name, value in self.network.named_parameters())
        names, values = zip(*named, strict=True)

        def loss(values, part, label):
            with self._passes():
                scores = torch.func.functional_call(self.network, dict(zip(names, values, strict=True)), (part,))
                return functional.cross_entropy(scores, label.expand(self.copies))

        each = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))

        def work():
            total = [torch.zeros_like(value) for value in values]
            for part, own, _ in self._parts():
                gradients = each(values, part.unflatten(0, (-1, self.copies)), own)
                norms = torch.stack([gradient.flatten(1).norm(dim=1) for gradient in gradients]).norm(dim=0)
                factors = (CLIP / norms).clamp_max(1.0)
                for sum_, gradient in zip(total, gradients, strict=True):
                    sum_ += torch.einsum("n,n...->...", factors, gradient)
            return total

        return work

    def _opacus(self, fast: bool, **options):
        from opacus.grad_sample import GradSampleModule, GradSampleModuleFastGradientClipping
        from opacus.optimizers import DPOptimizer, DPOptimizerFastGradientClipping
        from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping

        if fast:
            options |= {"max_grad_norm": CLIP, "use_ghost_clipping": True}
        module = (GradSampleModuleFastGradientClipping if fast else GradSampleModule)(
            self.network, loss_reduction="sum", strict=False, **options
        )
        optimiser = (DPOptimizerFastGradientClipping if fast else DPOptimizer)(
            torch.optim.SGD(self.network.parameters(), lr=0.0),
            noise_multiplier=0.0,
            max_grad_norm=CLIP,
            expected_batch_size=self.batch,
            loss_reduction="sum",
        )
        loss = torch.nn.CrossEntropyLoss(reduction="sum")
        if fast:
            loss = DPLossFastGradientClipping(module, optimiser, loss, loss_reduction="sum")

        def work():
            total = [torch.zeros_like(value) for value in self.network.parameters()]
            for part, own, _ in self._parts():
                optimiser.zero_grad()
                with self._passes():
                    value = loss(module(part), own)
                value.backward()
                optimiser.pre_step()
                for sum_, parameter in zip(total, self.network.parameters(), strict=True):
                    sum_ += parameter.summed_grad
            return total

        return work
