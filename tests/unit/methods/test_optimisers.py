"""Optimisers against those of torch."""

import pytest
import torch

from dpstudy.core.arrays import to_numpy
from dpstudy.methods import optimisers


@pytest.mark.parametrize("name", ["sgd", "momentum", "adam"])
def test_optimisers_equal_torch(kind, name):
    generator = torch.Generator().manual_seed(3)
    ours = torch.randn(4, 3, generator=generator)
    theirs = torch.nn.Parameter(ours.clone())
    reference = {
        "sgd": lambda: torch.optim.SGD([theirs], lr=0.3),
        "momentum": lambda: torch.optim.SGD([theirs], lr=0.3, momentum=0.8),
        "adam": lambda: torch.optim.Adam([theirs], lr=0.3),
    }[name]()
    held = kind.array(ours.clone())
    optimiser = optimisers.make_optimiser(name, 0.3, 0.8, held)
    for _ in range(25):
        gradient = torch.randn(4, 3, generator=generator)
        optimiser.step(held, kind.array(gradient))
        theirs.grad = gradient.clone()
        reference.step()
    assert to_numpy(held) == pytest.approx(theirs.detach().numpy(), abs=1e-5)
