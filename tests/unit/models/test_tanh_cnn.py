"""The networks of tramer2021: their sizes are the printed ones."""

import pytest
import torch

from dpstudy.core.errors import StudyError
from dpstudy.models.tanh_cnn import LAYERS, build

PARAMETERS = {  # published_architectures: Table 4 says 26K, 551K, 168K, 33K and 187K
    "tanh-28": ((1, 28, 28), 26_010),
    "tanh-32": ((3, 32, 32), 550_570),
    "tanh-32-smaller": ((3, 32, 32), 167_642),
    "scatter-28": ((81, 7, 7), 33_066),
    "scatter-28-printed": ((81, 7, 7), 20_778),
    "scatter-32": ((243, 8, 8), 187_210),
    "scatter-32-printed": ((243, 8, 8), 179_530),
    "scatter-32-smaller": ((243, 8, 8), 56_346),
}


def test_every_network_is_held_against_a_size():
    assert PARAMETERS.keys() == LAYERS.keys()


@pytest.mark.parametrize(("name", "shape", "count"), [(name, *rest) for name, rest in PARAMETERS.items()])
def test_sizes(name, shape, count):
    network = build(name, shape, 10)
    assert sum(value.numel() for value in network.parameters()) == count
    assert network(torch.zeros(3, *shape)).shape == (3, 10)
    kinds = [type(layer).__name__ for layer in network]
    assert kinds[-1] == "Linear" and kinds.count("Tanh") == kinds.count("Conv2d") + kinds.count("Linear") - 1


@pytest.mark.parametrize(
    ("name", "shape", "words"),
    [
        ("tanh-28", (784,), r"needs features of layout \(C, H, W\), not \(784,\)"),
        ("tanh-28", (1, 8, 8), "records of 8x8 are too small for it"),
    ],
)
def test_records_that_do_not_fit_are_refused(name, shape, words):
    with pytest.raises(StudyError, match=words):
        build(name, shape, 10)
