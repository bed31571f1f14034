"""What a scheduler counts for a micro-batch holds the engine's own estimate, and not much more."""

import pytest
import torch

from dpstudy.methods.network_memory import LIMIT_BYTES, micro_batch_mb
from dpstudy.methods.record_gradients import RecordGradients
from dpstudy.models import networks

SHAPES = {"wrn-10-1": (3, 32, 32), "wrn-16-4": (3, 32, 32), "wrn-40-4-gn": (3, 32, 32), "tanh-32": (3, 32, 32)}
SHAPES |= {"tanh-32-smaller": (3, 32, 32), "scatter-32-printed": (243, 8, 8)}
SHAPES |= {"tanh-28": (1, 28, 28), "scatter-28": (81, 7, 7), "scatter-32": (243, 8, 8), "lenet": (1, 28, 28)}
BETWEEN = (0.7, 2.0)  # times the engine's estimate, which is itself from above


@pytest.mark.parametrize("copies", [1, 4, 16])
@pytest.mark.parametrize("name", SHAPES)
def test_what_is_declared_is_about_what_the_engine_estimates(name, copies):
    shape = SHAPES[name]
    engine, record = RecordGradients(networks.build(name, shape, 10)), torch.zeros(copies, *shape)
    own = engine.micro_batch(record) * engine.bytes_of(record) / 1e6
    assert own <= LIMIT_BYTES / 1e6
    found = micro_batch_mb(name, copies, 32 * 32)
    assert found >= BETWEEN[0] * own
    if name.startswith("wrn"):  # of the others the most over K is said, some megabytes in all
        assert found <= BETWEEN[1] * own


def test_larger_images_and_unknown_networks_count_more():
    assert micro_batch_mb("wrn-10-1", 1, 64 * 64) > 2 * micro_batch_mb("wrn-10-1")
    assert micro_batch_mb("nf-resnet-50") == round(LIMIT_BYTES / 1e6) < micro_batch_mb("wrn-28-10", 16)


def test_a_size_that_somebody_set_counts():
    """A micro-batch that the entry names takes what it takes, whatever the bound."""
    assert micro_batch_mb("wrn-16-4", 4, records=26) == pytest.approx(
        2 * micro_batch_mb("wrn-16-4", 4, records=13), 0.01
    )
    assert micro_batch_mb("tanh-32", records=256) == 2 * micro_batch_mb("tanh-32")
    assert micro_batch_mb("tanh-32", copies=256) == 2 * micro_batch_mb("tanh-32"), "one record of more images than fit"
    assert micro_batch_mb("nf-resnet-50", records=16) == pytest.approx(2 * micro_batch_mb("nf-resnet-50"), 0.01)
    assert micro_batch_mb("wrn-10-1", records=1) < 10
