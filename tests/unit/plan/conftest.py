"""Small studies, as the config loads them."""

import copy
import json
from types import SimpleNamespace

import pytest

from dpstudy.config.loading import load
from dpstudy.plan import data_resources, resources

BASE = {
    "study": "small",
    "datasets": {
        "own": {
            "reader": "cifar",
            "location": "cifar10",
            "splits": {"validation": 0.2},
            "shards": 2,
            "delta": "1e-5",
        }
    },
    "public": {"web": {"reader": "dead_leaves", "count": 100, "shards": 2}},
    "backbones": {"cnn": {"architecture": "small_cnn", "public": "web", "width": 8, "embedding": 16, "epochs": 1}},
    "fits": {"pca": {"public": "web", "extractor": "pixels", "dim": 8}},
    "features": {
        "pixels": {"extractor": "pixels"},
        "cnn": {"extractor": "backbone", "backbone": "cnn"},
        "projected": {"extractor": "pixels", "fit": "pca"},
        "images": {"extractor": "images", "scaling": "unit"},
    },
    "methods": {
        "ls": {"method": "least_squares"},
        "sgd": {"method": "first_order", "loss": "sigmoid", "learning_rate": 2.0, "clipping_norm": 1.0, "steps": 5},
        "net": {
            "method": "network_dpsgd",
            "network": "scatter-28",
            "loss": "sigmoid",
            "learning_rate": 0.5,
            "clipping_norm": 1.0,
            "batch_size": 10,
            "steps": 2,
        },
        "smoothing": {"method": "instance_smoothing", "epochs": 1, "projected_dim": 4},
    },
    "epsilons": ["1", "inf"],
    "seeds": [0, 1],
}


def study_with(**changes) -> dict:
    """The study with values in place of its own; `a__b=value` is config["a"]["b"]. None takes a key away."""
    config = copy.deepcopy(BASE)
    for path, value in changes.items():
        *around, last = path.split("__")
        node = config
        for key in around:
            node = node.setdefault(key, {})
        if value is None:
            node.pop(last)
        else:
            node[last] = value
    return load(config)


@pytest.fixture(scope="session")
def study() -> dict:
    """The study as it stands; no test changes it."""
    return study_with()


class Names(dict):
    """As Snakemake's wildcards."""

    __getattr__ = dict.__getitem__


class Files(SimpleNamespace):
    """As Snakemake's inputs."""

    def get(self, name, default=None):
        return getattr(self, name, default)


@pytest.fixture
def no_gpu(monkeypatch):
    """A machine without one."""
    for module in (resources, data_resources):
        monkeypatch.setattr(module, "gpus", lambda: 0)


@pytest.fixture
def manifest(tmp_path):
    """Write a manifest of 100 records of 10 features and two classes, and of what is told of it."""

    def write(**content) -> str:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.json"
        path.write_text(json.dumps({"dim": 10, "classes": ["a", "b"], "rows": 100} | content))
        return str(path)

    return write
