"""What a GPU adds up, by Triton's interpreter, which needs none."""

import os
import subprocess
import sys

import pytest
import torch

from dpstudy.methods import record_sums

pytest.importorskip("triton")
PROGRAM = """
import torch
from dpstudy.methods import gpu_sums
torch.manual_seed(0)
for n, k in ((0, 5), (1, 1), (3, 513), (70, 600), (2, 9000)):
    for kind in (torch.float32, torch.bfloat16):
        rows, factors = torch.randn(n, k).to(kind), torch.rand(n).double()
        if n > 2:
            rows[1], factors[1] = float("nan"), 0  # a broken record has no part in the sum
        alive = torch.where(factors[:, None] == 0, 0.0, rows.double())
        squares, total = gpu_sums.squares(rows), gpu_sums.weighted(factors, rows)
        assert torch.allclose(squares, (rows.double() ** 2).sum(1), rtol=1e-14, equal_nan=True), (n, k, kind)
        assert torch.allclose(total, factors @ alive, rtol=1e-13, atol=1e-13), (n, k, kind)
"""


@pytest.mark.slow
def test_norms_and_sums_are_those_in_float64():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=os.environ | {"TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_where_triton_does_not_work_torch_does_it_and_it_is_said_once(caplog):
    """On this device it has no driver; on a cluster's node there may be no compiler."""
    record_sums._kernels.cache_clear()
    caplog.set_level("WARNING", "dpstudy")
    assert [record_sums._kernels(torch.device("cpu")) for _ in range(2)] == [None, None]
    (told,) = caplog.messages
    assert told.startswith("norms and sums on the GPU are made by torch, slower: Triton fails (")
