"""The printed settings of de2022 (Tables 12 to 23), and the epsilon that they spend by the paper's accounting."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from dpstudy.privacy.events import Event
from dpstudy.privacy.published import de2022 as renyi_epsilon
from dpstudy.tables.claims.role_evidence import Evidence

_NAMES = ("table", "dataset", "pretraining", "model", "method", "epsilon", "delta")
_FIRST, _LAST = 13, 23  # the tables of one setting a budget


@dataclass(frozen=True)
class Setting:
    """One setting of Tables 13 to 23; epsilon is math.inf without privacy."""

    table: str
    dataset: str
    method: str
    epsilon: float
    delta: float
    batch: int
    sigma: float
    steps: int

    def spent(self, records: int) -> float:
        """The epsilon that the setting spends on `n` records."""
        return spent(self.sigma, self.steps, self.batch / records, self.delta)


@cache
def spent(sigma: float, steps: int, rate: float, delta: float) -> float:
    """The epsilon of DP-SGD by Renyi DP with the improved conversion, the paper's accounting."""
    return renyi_epsilon([Event("gradient", "gaussian", sigma, 1.0, steps, "poisson", rate)], delta)


def settings(evidence: Evidence) -> list[Setting]:
    """The settings in Tables 13 to 23, in order."""
    groups: dict[tuple[str, ...], dict[str, str]] = {}
    for row in evidence.hyperparameters:
        if row["table"].isdigit() and _FIRST <= int(row["table"]) <= _LAST:
            groups.setdefault(tuple(row[name] for name in _NAMES), {})[row["parameter"]] = row["value"]
    return [_setting(dict(zip(_NAMES, names, strict=True)), values) for names, values in groups.items()]


def _setting(names: Mapping[str, str], values: Mapping[str, str]) -> Setting:
    return Setting(
        names["table"],
        names["dataset"],
        names["method"],
        float(names["epsilon"]),
        float(names["delta"]),
        int(values["batch_size"]),
        float(values["noise_multiplier"]),
        int(values["num_updates"]),
    )


def records(evidence: Evidence, dataset: str) -> tuple[int, int]:
    """Table 12: (training records where results are on the test set, where they are on the validation set)."""
    sizes = {
        row["parameter"]: row["value"]
        for row in evidence.hyperparameters
        if (row["table"], row["dataset"]) == ("12", dataset)
    }
    train, both = sizes["n_train"], sizes["n_train_plus_valid"]
    return int(train if both == "-" else both), int(train)
