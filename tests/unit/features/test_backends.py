"""Which backend runs a network, and that none does whose features are others than torch's."""

from importlib.util import find_spec

import pytest
import torch

from dpstudy.core.errors import StudyError
from dpstudy.features import backends

SHAPE = (2, 3, 64, 64)


@pytest.fixture
def network():
    return torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(4), torch.nn.Flatten())


@pytest.fixture
def installed(monkeypatch):
    """Whether OpenVINO can be found: as the test says."""
    return lambda there: monkeypatch.setattr(backends, "find_spec", lambda _: object() if there else None)


@pytest.mark.parametrize(
    ("asked", "device", "side", "there", "expected"),
    [
        ("auto", "cpu", 64, True, "openvino"),
        ("auto", "cpu", 63, True, "torch"),
        ("auto", "cpu", 64, False, "torch"),
        ("auto", "cuda", 224, True, "torch"),
        ("openvino", "cpu", 8, False, "openvino"),
        ("compile", "cuda", 8, True, "compile"),
        ("torch", "cpu", 224, True, "torch"),
    ],
)
def test_auto_is_openvino_on_a_cpu_for_larger_images_where_it_is_there(asked, device, side, there, expected, installed):
    installed(there)
    assert backends.chosen(asked, device, side * side) == expected


def run_by(work, monkeypatch):
    monkeypatch.setattr(backends, "_OpenVINO", lambda network, _: lambda planes: work(network(planes)))


def test_what_gives_the_same_features_is_taken(network, installed, monkeypatch):
    installed(True)
    run_by(lambda features: features + 0.9e-4 * features.abs().max(), monkeypatch)
    name, run = backends.runner("auto", network, SHAPE, "cpu")
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
def test_what_gives_others_or_none_is_refused_or_not_chosen(work, problem, network, installed, monkeypatch, caplog):
    installed(True)
    run_by(work, monkeypatch)
    assert backends.runner("auto", network, SHAPE, "cpu") == ("torch", network)
    assert "torch runs it" in caplog.text
    with pytest.raises(StudyError, match=f"^backend 'openvino' {problem}.*; write `backend: torch`$"):
        backends.runner("openvino", network, SHAPE, "cpu")


def test_a_missing_backend_names_its_extra(network, monkeypatch):
    monkeypatch.setattr(backends, "find_spec", lambda _: None)
    with pytest.raises(StudyError, match=r"backend 'openvino': needs openvino.*pip install 'dpstudy\[openvino\]'"):
        backends.runner("openvino", network, SHAPE, "cpu")


def test_versions_are_named():
    assert backends.version("torch") == f"torch {torch.__version__.partition('+')[0]}"
    assert backends.version("compile").startswith("compile 2.")


class Unconvertible(torch.nn.Module):
    def forward(self, planes):
        return torch.special.bessel_j0(planes.mean((2, 3)))  # which OpenVINO has not


@pytest.mark.skipif(not find_spec("openvino"), reason="takes OpenVINO")
def test_what_openvino_cannot_convert_torch_runs(caplog):
    name, _ = backends.runner("auto", Unconvertible(), SHAPE, "cpu")
    assert name == "torch" and "OpenVINO cannot run this network" in caplog.text


@pytest.mark.skipif(not find_spec("openvino"), reason="takes OpenVINO")
def test_its_process_ends_with_what_asked_for_it(network):
    _, run = backends.runner("openvino", network, SHAPE, "cpu")
    process = run._process
    planes = torch.rand(SHAPE, generator=torch.Generator().manual_seed(3))
    assert torch.allclose(run(planes), network(planes), atol=1e-6) and process.poll() is None
    del run
    assert process.wait(timeout=20) == 0


@pytest.mark.skipif(not find_spec("openvino"), reason="takes OpenVINO")
def test_a_process_that_died_is_one_sentence(network):
    _, run = backends.runner("openvino", network, SHAPE, "cpu")
    run._process.kill()
    run._process.wait()
    with pytest.raises(StudyError, match="OpenVINO's process died"):
        run(torch.rand(SHAPE))
