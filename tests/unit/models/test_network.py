"""Networks as arrays."""

import numpy as np
import pytest
import torch

from dpstudy.models import networks, tanh_cnn
from dpstudy.models.network import NetworkModel


def test_a_network_has_those_that_torch_counts():
    network = tanh_cnn.build("scatter-28", (81, 7, 7), 10)
    state = {name: value.detach().numpy() for name, value in network.named_parameters()}
    model = NetworkModel("scatter-28", (81, 7, 7), 10, state, center=np.zeros(3969))
    assert model.parameters == sum(value.numel() for value in network.parameters()) == 33_066


@pytest.mark.parametrize(
    ("architecture", "shape", "input_size", "block"),
    [
        ("wrn-16-4", (3, 32, 32), None, 512),
        ("tanh-28", (1, 28, 28), None, 512),
        ("timm:n@64+frozen", (3, 32, 32), None, 128),
        ("timm:n", (3, 32, 32), (224, 224), 10),
        ("timm:n", (3, 1024, 1024), None, 1),
    ],
)
def test_large_images_are_scored_a_few_at_a_time(monkeypatch, architecture, shape, input_size, block):
    """512 of 224 x 224 at once took 10 GB in a job that asks for 3."""
    sizes = []

    class Network(torch.nn.Module):
        def forward(self, records):
            sizes.append(len(records))
            return torch.zeros(len(records), 2)

    monkeypatch.setattr(networks, "build", lambda *_args: Network())
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    model = NetworkModel(architecture, shape, 2, {}, input_size=input_size)
    rows = np.broadcast_to(np.zeros(1, np.float32), (min(block + 1, 513), model.inputs))
    assert model.scores(rows).shape == (len(rows), 2)
    assert sizes == [block, 1]
