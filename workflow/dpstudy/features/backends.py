"""What runs a network on blocks of one fixed shape: torch, torch.compile, or OpenVINO, which is the fastest on a CPU.

Each is held against torch before it is used, on pictures that a seed draws: the outputs differ by at most 1e-4 of the
largest.
"""

import importlib.metadata
import logging
import sys
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from dpstudy.core import extras
from dpstudy.core.errors import StudyError

AUTO = "auto"
NAMES = ("torch", "compile", "openvino")
_LEAST_PIXELS = 64 * 64  # of an input, from which on converting a network pays
_ALIKE = 1e-4

Run = Callable[[Any], Any]  # torch tensors (n, C, H, W) to (n, d)


def chosen(backend: str, device: str, pixels: int) -> str:
    """The backend that a config's word stands for.

    Args:
        device: "cpu" or "cuda".
        pixels: of an input.
    """
    if backend != AUTO:
        return backend
    fast = device == "cpu" and pixels >= _LEAST_PIXELS and find_spec("openvino") is not None
    return "openvino" if fast else "torch"


def version(backend: str) -> str:
    """A backend with its version, as manifests have it."""
    package = "openvino" if backend == "openvino" else "torch"
    return f"{backend} {importlib.metadata.version(package).partition('+')[0]}"


def runner(backend: str, network, shape: tuple[int, ...], device: str) -> tuple[str, Run]:
    """(backend, what runs `network` on blocks of `shape`). `auto` falls back to torch where OpenVINO cannot run it.

    Raises:
        StudyError: the backend that was asked for is not installed, cannot run the network, or gives other features.
    """
    import torch

    name = chosen(backend, device, shape[2] * shape[3])
    if name == "torch":
        return name, network
    drawn = torch.rand(shape, generator=torch.Generator().manual_seed(0)).mul_(2).sub_(1).to(device)
    try:
        with extras.named(f"backend {name!r}"):
            run = _by_openvino(network, drawn) if name == "openvino" else _compiled(network)
        with torch.inference_mode():
            found, expected = run(drawn), network(drawn)
    except StudyError:
        raise
    except Exception as error:  # each network may fail in its own way
        problem = f"cannot run this network ({(str(error) or type(error).__name__).splitlines()[0]})"
    else:
        apart = float((found - expected).abs().max() / expected.abs().max().clamp(min=1e-30))
        if apart <= _ALIKE:
            return name, run
        problem = f"gives features that differ from torch's by {apart:.1e} of the largest"
    if backend != AUTO:
        raise StudyError(f"backend {name!r} {problem}; write `backend: torch`")
    logging.getLogger(__name__).warning("OpenVINO %s; torch runs it", problem)
    return "torch", network


def _compiled(network) -> Run:
    import torch
    import torch._inductor.config

    torch._inductor.config.freezing = True
    return torch.compile(network, dynamic=False)


def _by_openvino(network, example) -> Run:
    import torch

    sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]  # which would report to its makers
    import openvino

    root = logging.getLogger()
    level, filters, handlers = root.level, root.filters[:], root.handlers[:]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a trace has one shape: blocks have one, and the outcome is compared
            model = openvino.convert_model(network, example_input=example, input=list(example.shape))
    finally:  # it silences all but errors, and leaves that so where it fails
        root.setLevel(level)
        root.filters, root.handlers = filters, handlers
    settings = {
        "INFERENCE_PRECISION_HINT": "f32",
        "INFERENCE_NUM_THREADS": torch.get_num_threads(),
        "NUM_STREAMS": 1,
        "EXECUTION_MODE_HINT": "ACCURACY",
    }
    compiled = openvino.Core().compile_model(model, "CPU", settings)
    return lambda planes: torch.from_numpy(compiled(planes.numpy())[0].copy())
