import shutil
import subprocess

import pytest

from dpstudy.core.files import write_json
from dpstudy.evaluation.summary import cell_name, read_summary, write_summary
from dpstudy.tables.results import Results

EPSILONS = ["0.5", "1.2", "2", "inf"]


class Inputs(dict):
    """As Snakemake's inputs."""

    __getattr__ = dict.__getitem__


class Study:
    """A finished study on disk: metrics and ledgers of 2 kinds of features, 2 entries, 4 epsilons, 3 seeds."""

    axes = {"datasets": ["mnist"], "features": ["pixels", "scatternet"], "entries": ["ls", "dp-sgd"]}
    axes |= {"epsilons": EPSILONS}

    def __init__(self, folder):
        self.folder, self.summary, self.ledgers, self.metrics = folder, folder / "summary.parquet", {}, {}
        cells = []
        for i, features in enumerate(self.axes["features"]):
            for j, entry in enumerate(self.axes["entries"]):
                for k, epsilon in enumerate(EPSILONS):
                    if (entry, epsilon) == ("ls", "0.5"):
                        continue  # a missing cell
                    cells.append(self._cell(features, entry, epsilon, 90 + 5 * i + j + k))
        write_summary(cells, folder / "summary.csv", self.summary)

    def _cell(self, features, entry, epsilon, value):
        cell = {"dataset": "mnist", "features": features, "entry": entry, "epsilon": epsilon}
        path = self.folder / "cells" / cell_name(**cell)
        seeds = [{"seed": s, "split": "test", "top1": value + d} for s, d in enumerate((-0.2, 0.0, 0.5))]
        write_json(path / "metrics.json", cell | {"method": "m", "classes": 10, "seeds": seeds, "made_by": {}})
        certified = None if epsilon == "inf" else float(epsilon) - 0.001
        write_json(path / "ledger.json", _ledger(epsilon, certified))
        self.ledgers[cell_name(**cell)] = path / "ledger.json"
        self.metrics[cell_name(**cell)] = path / "metrics.json"
        return cell | {"metrics": path / "metrics.json"}

    @property
    def results(self):
        """As tables read it."""
        return Results(
            self.axes,
            read_summary(self.summary),
            ledgers=self.ledgers,
            metrics=self.metrics,
            audits=getattr(self, "audits", {}),
        )

    @staticmethod
    def ledger(epsilon, certified):
        """A ledger of one DP-SGD run, or (certified: None) of one without noise."""
        return _ledger(epsilon, certified)


def _ledger(epsilon, certified):
    event = {"name": "gradient", "mechanism": "gaussian", "noise_multiplier": 1.25, "sensitivity": 0.1, "count": 375}
    event |= {"sampling": "poisson", "sampling_rate": 0.068266666}
    return {
        "scope": "one seed",
        "adjacency": "add-remove-one",
        "unit": "record",
        "n": 60000,
        "delta": 1e-5,
        "target_epsilon": epsilon,
        "epsilon": certified,
        "accountant": "pld" if certified else "none",
        "epsilon_by": {"exact": None, "pld": certified, "rdp": certified and certified * 1.1, "zcdp": None},
        "events": [event] if certified else [],
        "noise": "seeded",
        "not_accounted": ["Noise was drawn from a seeded generator."],
        "guarantee": "proved" if certified else "none",
    }


class PaperStudy:
    """A finished study on disk beside mehta2023: two data sets, two pre-trainings, five entries, three seeds.

    `VALUES`: (data set, features, entry) -> mean by epsilon; the seeds lie 0.3 below, on and above it.
    """

    axes = {"datasets": ["cifar10", "own"], "features": ["in1k", "in21k"], "epsilons": ["0.01", "1", "inf"]}
    axes |= {"entries": ["dp-ls", "dp-fc-10", "dp-adam-1", "ours", "control"]}
    GROUPS = [
        {"features": "in1k", "label": "ImageNet-1k", "published": {"pretraining": "ImageNet-1k"}},
        {"features": "in21k", "label": "ImageNet-21k", "published": {"pretraining": "ImageNet-21k"}},
    ]
    ROWS = [
        {"entry": "dp-ls", "label": "DP-LS", "epochs": 1, "published": {"method": "DP-LS", "epochs": "1"}},
        {"entry": "dp-fc-10", "label": "DP-FC", "epochs": 10, "published": {"method": "DP-FC", "epochs": "10"}},
        {"entry": "dp-adam-1", "label": "DP-Adam", "epochs": 1, "published": {"method": "DP-Adam", "epochs": "1"}},
        {"entry": "ours"},
        {"entry": "control", "label": "shared noise"},
    ]
    VALUES = {
        ("cifar10", "in1k", "dp-ls"): {"0.01": 82.0, "1": 88.0, "inf": 91.0},
        ("cifar10", "in1k", "dp-fc-10"): {"0.01": 82.04, "1": 90.0, "inf": 92.0},
        ("cifar10", "in1k", "ours"): {"0.01": 70.0, "inf": 92.5},
        ("cifar10", "in1k", "control"): {"0.01": 99.0},
        ("cifar10", "in21k", "dp-ls"): {"0.01": 94.0, "1": 96.5, "inf": 97.0},
        ("cifar10", "in21k", "ours"): {"0.01": 95.0, "1": 96.4, "inf": 96.0},
        ("own", "in1k", "dp-ls"): {"0.01": 60.0, "1": 70.0, "inf": 80.0},
        ("own", "in1k", "ours"): {"0.01": 65.0, "1": 69.0, "inf": 80.0},
    }

    def __init__(self, folder):
        self.folder, self.summary, self.ledgers, self.metrics = folder, folder / "summary.parquet", {}, {}
        self.gaussian = _ledger("1", 0.9)["events"][0] | {"sampling": "none", "sampling_rate": 1.0, "count": 1}
        cells = []
        for (dataset, features, entry), means in self.VALUES.items():
            for epsilon, mean in means.items():
                cell = {"dataset": dataset, "features": features, "entry": entry, "epsilon": epsilon}
                name, path = cell_name(**cell), folder / "cells" / cell_name(**cell)
                seeds = [{"seed": s, "split": "test", "top1": mean + d} for s, d in enumerate((-0.3, 0.0, 0.3))]
                metrics = {"method": "m", "classes": 10, "seeds": seeds, "made_by": {}}
                write_json(path / "metrics.json", cell | metrics)
                certified = None if epsilon == "inf" or entry == "control" else float(epsilon) - 0.001
                write_json(path / "ledger.json", _ledger(epsilon, certified))
                self.ledgers[name], self.metrics[name] = path / "ledger.json", path / "metrics.json"
                cells.append(cell | {"metrics": path / "metrics.json"})
        write_summary(cells, folder / "summary.csv", self.summary)

    @property
    def results(self):
        """As tables read it."""
        return Results(self.axes, read_summary(self.summary), ledgers=self.ledgers, metrics=self.metrics)

    def set_ledger(self, cell, **changes):
        """Change a cell's ledger."""
        epsilon = cell.rpartition("=")[2]
        write_json(self.ledgers[cell], _ledger(epsilon, float(epsilon) - 0.001) | changes)


@pytest.fixture
def paper_study(tmp_path):
    """A finished study beside mehta2023 in a temporary folder."""
    return PaperStudy(tmp_path)


@pytest.fixture
def study(tmp_path):
    """A finished study in a temporary folder."""
    return Study(tmp_path)


@pytest.fixture
def compiles():
    """compiles(folder, "a", "b"): a.tex and b.tex compile in a document that includes them, nothing standing out."""
    if shutil.which("pdflatex") is None:
        pytest.skip("pdflatex is not installed")

    def check(folder, *names, packages="booktabs"):
        inputs = "".join(rf"\input{{{name}}}" for name in names)
        (folder / "main.tex").write_text(
            f"\\documentclass{{article}}\n\\usepackage{{{packages}}}\n\\begin{{document}}\n{inputs}\n\\end{{document}}\n"
        )
        command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "main.tex"]
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, timeout=60, errors="replace"
        )
        assert done.returncode == 0, done.stdout[-2000:]
        assert "Overfull" not in done.stdout and "Missing character" not in done.stdout

    return check
