"""Networks as arrays."""

import numpy as np

from dpstudy.models import tanh_cnn
from dpstudy.models.network import NetworkModel


def test_a_network_has_those_that_torch_counts():
    network = tanh_cnn.build("scatter-28", (81, 7, 7), 10)
    state = {name: value.detach().numpy() for name, value in network.named_parameters()}
    model = NetworkModel("scatter-28", (81, 7, 7), 10, state, center=np.zeros(3969))
    assert model.parameters == sum(value.numel() for value in network.parameters()) == 33_066
