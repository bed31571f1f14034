"""Backends that run a network on blocks of one fixed shape: torch, torch.compile, or OpenVINO, the fastest on a CPU.

Each is held against torch before it is used, on pictures that a seed draws. `auto` is torch.
"""

import contextlib
import importlib.metadata
import math
import subprocess
import sys
import tempfile
import warnings
import weakref
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, BinaryIO, cast

from dpstudy.core import extras
from dpstudy.core.errors import StudyError

AUTO, OPENVINO = "auto", "openvino"

Run = Callable[[Any], Any]  # torch tensors (n, C, H, W) to (n, d)


def version(backend: str) -> str:
    """A backend's name and version, as recorded in manifests."""
    package = "openvino" if backend == "openvino" else "torch"
    return f"{backend} {importlib.metadata.version(package).partition('+')[0]}"


def runner(backend: str, network, shape: tuple[int, ...], device: str, near: float = 1e-4) -> tuple[str, Run]:
    """(backend, a function that runs `network` on blocks of `shape`), whose outputs are checked against torch's.

    They may differ from torch's by `near` of the largest.

    Raises:
        StudyError: the backend that was asked for is not installed, cannot run the network, or gives other features.
    """
    import torch

    if backend in (AUTO, "torch"):
        return "torch", network
    drawn = torch.rand(shape, generator=torch.Generator().manual_seed(0)).mul_(2).sub_(1).to(device)
    try:
        with extras.named(f"backend {backend!r}"):
            run = _OpenVINO(network, drawn) if backend == "openvino" else _compiled(network)
        with torch.inference_mode():
            outputs, expected = run(drawn), network(drawn)
    except StudyError:
        raise
    except Exception as error:  # each network may fail in its own way
        problem = f"cannot run this network ({(str(error) or type(error).__name__).splitlines()[0]})"
    else:
        apart = float((outputs - expected).abs().max() / expected.abs().max().clamp(min=1e-30))
        if apart <= near:
            return backend, run
        problem = f"gives features that differ from torch's by {apart:.1e} of the largest"
    raise StudyError(f"backend {backend!r} {problem}; write `backend: torch`")


def _compiled(network) -> Run:
    import torch
    import torch._inductor.config

    torch._inductor.config.freezing = True
    return torch.compile(network, dynamic=False)


# OpenVINO runs in processes of its own: where its runtime shared one with torch, memory was corrupted, and other code
# died of it (OpenVINO 2026.4, torch 2.15). The second process, which computes, has no torch.
_CONVERT = """
import sys
sys.modules["openvino_telemetry"] = None  # which would report to its makers
import openvino, torch
traced, converted, *shape = sys.argv[1:]
shape = list(map(int, shape))
model = openvino.convert_model(torch.jit.load(traced), example_input=torch.zeros(shape), input=shape)
openvino.save_model(model, converted, compress_to_fp16=False)
"""
_SERVE = """
import sys
sys.modules["openvino_telemetry"] = None
import numpy as np, openvino
converted, threads, *shape = sys.argv[1:]
shape = list(map(int, shape))
settings = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": int(threads), "NUM_STREAMS": 1}
model = openvino.Core().compile_model(converted, "CPU", settings | {"EXECUTION_MODE_HINT": "ACCURACY"})
print(*model.output(0).shape, flush=True)
size = 4 * int(np.prod(shape))
while len(block := sys.stdin.buffer.read(size)) == size:
    found = model(np.frombuffer(block, np.float32).reshape(shape))[0]
    sys.stdout.buffer.write(np.ascontiguousarray(found, np.float32))
    sys.stdout.buffer.flush()
"""


class _OpenVINO:
    """A network for blocks of one shape, in a process that ends with this one."""

    def __init__(self, network, example):
        import torch

        if find_spec("openvino") is None:
            raise ModuleNotFoundError("No module named 'openvino'", name="openvino")
        shape = list(map(str, example.shape))
        with tempfile.TemporaryDirectory() as folder:
            traced, converted = f"{folder}/traced.pt", f"{folder}/converted.xml"
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that a trace has one shape: blocks have one; outputs are compared
                torch.jit.trace(network, example, check_trace=False).save(traced)
            done = subprocess.run(
                [sys.executable, "-c", _CONVERT, traced, converted, *shape], capture_output=True, text=True, check=False
            )
            if done.returncode:
                raise RuntimeError((done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1])
            self._process = subprocess.Popen(
                [sys.executable, "-c", _SERVE, converted, str(torch.get_num_threads()), *shape],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            self._into, self._from = cast(BinaryIO, self._process.stdin), cast(BinaryIO, self._process.stdout)
            self._shape = tuple(map(int, self._from.readline().split()))  # once it has read the file
        weakref.finalize(self, self._into.close)
        if not self._shape:
            raise RuntimeError("its process died")

    def __call__(self, planes):
        import torch

        with contextlib.suppress(BrokenPipeError):
            self._into.write(planes.contiguous().numpy())
            self._into.flush()
        output = self._from.read(4 * math.prod(self._shape))
        if len(output) < 4 * math.prod(self._shape):
            raise StudyError("OpenVINO's process died; run the same command again, or write `backend: torch`")
        return torch.frombuffer(bytearray(output), dtype=torch.float32).view(self._shape)
