"""Which backend runs a network, and that none does whose features are others than torch's."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from dpstudy.core.errors import StudyError
from dpstudy.features import backends

SHAPE = (2, 3, 64, 64)


@pytest.fixture
def network():
    return torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(4), torch.nn.Flatten())


@pytest.mark.parametrize("backend", ["auto", "torch"])
def test_auto_is_torch(backend, network):
    assert backends.runner(backend, network, SHAPE, "cpu") == ("torch", network)


def run_by(work, monkeypatch):
    monkeypatch.setattr(backends, "_OpenVINO", lambda network, _: lambda planes: work(network(planes)))


def test_what_gives_the_same_features_is_taken(network, monkeypatch):
    run_by(lambda features: features + 0.9e-4 * features.abs().max(), monkeypatch)
    name, run = backends.runner("openvino", network, SHAPE, "cpu")
    assert name == "openvino" and run is not network


@pytest.mark.parametrize(
    ("work", "problem"),
    [
        (
            lambda features: features + 1.1e-4 * features.abs().max(),
            r"gives features that differ from torch's by 1.1e-04",
        ),
        (lambda features: features[:, :1] @ features, r"cannot run this network \(mm: mat1"),
        (lambda features: features * float("nan"), "gives features that differ from torch's by nan"),
    ],
)
def test_what_gives_others_or_none_is_refused(work, problem, network, monkeypatch):
    run_by(work, monkeypatch)
    with pytest.raises(StudyError, match=f"^backend 'openvino' {problem}.*; write `backend: torch`$"):
        backends.runner("openvino", network, SHAPE, "cpu")


def test_a_missing_backend_names_its_extra(network, monkeypatch):
    monkeypatch.setattr(backends, "find_spec", lambda _: None)
    with pytest.raises(StudyError, match=r"backend 'openvino': needs openvino.*pip install 'dpstudy\[openvino\]'"):
        backends.runner("openvino", network, SHAPE, "cpu")


def test_versions_are_named():
    assert backends.version("torch") == f"torch {torch.__version__.partition('+')[0]}"
    assert backends.version("compile").startswith("compile 2.")


@pytest.mark.slow
@pytest.mark.skipif(not find_spec("openvino"), reason="takes OpenVINO")
def test_openvino_in_a_process_of_its_own():
    """Where torch's tracer ran in the process of many other tests, that process died."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(Path(__file__).with_name("openvino_checks.py"))],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
