"""Both kinds of arrays that a linear method computes with."""

import numpy as np
import pytest
import torch

from dpstudy.core.arrays import Place
from dpstudy.methods import records


@pytest.fixture(params=["numpy", "torch"])
def kind(request, monkeypatch):
    """A place on the CPU, where records that a test prepares lie."""
    where = Place({"numpy": np, "torch": torch}[request.param], "cpu")
    monkeypatch.setattr(records, "place", lambda tensors=False: where)
    return where
