import pytest

from dpstudy.evaluation.summary import cell_name, write_summary
from dpstudy.files import write_json

EPSILONS = ["0.5", "1.2", "2", "inf"]


class Study:
    """A finished study on disk: metrics and ledgers of 2 kinds of features, 2 entries, 4 epsilons, 3 seeds."""

    axes = {"datasets": ["mnist"], "features": ["pixels", "scatternet"], "entries": ["ls", "dp-sgd"]}
    axes |= {"epsilons": EPSILONS}

    def __init__(self, folder):
        self.folder, self.summary, self.ledgers = folder, folder / "summary.csv", {}
        cells = []
        for i, features in enumerate(self.axes["features"]):
            for j, entry in enumerate(self.axes["entries"]):
                for k, epsilon in enumerate(EPSILONS):
                    if (entry, epsilon) == ("ls", "0.5"):
                        continue  # a missing cell
                    cells.append(self._cell(features, entry, epsilon, 90 + 5 * i + j + k))
        write_summary(cells, self.summary, folder / "summary.parquet")

    def _cell(self, features, entry, epsilon, value):
        cell = {"dataset": "mnist", "features": features, "entry": entry, "epsilon": epsilon}
        path = self.folder / "cells" / cell_name(**cell)
        seeds = [{"seed": s, "split": "test", "top1": value + d} for s, d in enumerate((-0.2, 0.0, 0.5))]
        write_json(path / "metrics.json", cell | {"method": "m", "seeds": seeds, "made_by": {}})
        certified = None if epsilon == "inf" else float(epsilon) - 0.001
        write_json(path / "ledger.json", _ledger(epsilon, certified))
        self.ledgers[cell_name(**cell)] = path / "ledger.json"
        return cell | {"metrics": path / "metrics.json"}

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


@pytest.fixture
def study(tmp_path):
    """A finished study in a temporary folder."""
    return Study(tmp_path)
