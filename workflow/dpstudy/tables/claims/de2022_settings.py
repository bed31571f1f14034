"""The printed settings of de2022 (Tables 12 to 23), the epsilon that they spend by the paper's accounting, and the
claims about either (sections 1, 2.2, appendix A)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from dpstudy.privacy.events import Event
from dpstudy.privacy.published import de2022 as renyi_epsilon
from dpstudy.tables.claims.de2022_printed import CIFAR10, CIFAR100
from dpstudy.tables.claims.finding import COMPUTED, PRINTED, Finding, decided, number, undecided
from dpstudy.tables.claims.role_evidence import Evidence
from dpstudy.tables.published import RESULTS, published_rows

ABOUT = 0.02  # relative difference of epsilons that still reads as the same
_NAMES = ("table", "dataset", "pretraining", "model", "method", "epsilon", "delta")
_FIRST, _LAST = 13, 23  # the tables of one setting a budget
# Relative difference between a printed epsilon and the one of its setting that still reads as the same: sigma and T are
# rounded where they are printed.
_SAME = 0.025
_NEAR = 0.01
_UNPAID = "not paid for"  # what ledgers say of a choice of hyper-parameters
_BU = {CIFAR10: "96.7", CIFAR100: "83.0"}  # of Bu et al. at epsilon 1


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

    def off(self, records: int) -> float:
        """How far that lies from the printed epsilon, relatively."""
        return self.spent(records) / self.epsilon - 1


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
    found = []
    for (table, dataset, _, _, method, epsilon, delta), values in groups.items():
        used = int(values["batch_size"]), float(values["noise_multiplier"]), int(values["num_updates"])
        found.append(Setting(table, dataset, method, float(epsilon), float(delta), *used))
    return found


def records(evidence: Evidence, dataset: str) -> tuple[int, int]:
    """Table 12: (training records where results are on the test set, where they are on the validation set)."""
    rows = [row for row in evidence.hyperparameters if (row["table"], row["dataset"]) == ("12", dataset)]
    sizes = {row["parameter"]: row["value"] for row in rows}
    train, both = sizes["n_train"], sizes["n_train_plus_valid"]
    return int(train if both == "-" else both), int(train)


def _closest(evidence: Evidence) -> list[tuple[Setting, int, float]]:
    """(private setting, records, relative difference of epsilons): with all training records, or without those for
    validation if that is nearer."""
    found = []
    for one in settings(evidence):
        if one.sigma > 0:
            every, train = records(evidence, one.dataset)
            sizes = (every,) if abs(one.off(every)) <= _SAME else (every, train)
            found.append((one, *min(((size, one.off(size)) for size in sizes), key=lambda pair: abs(pair[1]))))
    return found


def recomputed(evidence: Evidence) -> Finding:
    """Judge the claim: the settings in Tables 13 to 23 spend the printed epsilon on Table 12's numbers of records."""
    closest = _closest(evidence)
    wrong = [_named(one) for one, _, off in closest if abs(off) > _SAME]
    near = sum(abs(off) <= _NEAR for _, _, off in closest)
    worst = max(closest, key=lambda item: abs(item[2]))
    text = (
        f"Renyi DP with the improved conversion, δ and N as printed: {near} of {len(closest)} settings within "
        f"{_NEAR:.0%} of the printed ε, the worst {worst[2]:.1%} ({_named(worst[0])})"
    )
    fewer = [one for one, size, _ in closest if size != records(evidence, one.dataset)[0]]
    if fewer:
        sizes = ", ".join(f"{size:,}" for size in dict.fromkeys(records(evidence, one.dataset)[1] for one in fewer))
        text += f". With N = {sizes}, the records without those for validation: {_list(fewer)}; "
        text += "on all records, where the tables' test results are from, they would spend "
        offs = [one.off(records(evidence, one.dataset)[0]) for one in fewer]
        text += f"{-max(offs):.0%} to {-min(offs):.0%} less"
    text += f". Not reproduced: {', '.join(wrong)}" if wrong else ""
    return decided(not wrong, COMPUTED, text)


def _named(one: Setting) -> str:
    return f"Table {one.table}, {one.method.removeprefix('DP-SGD').strip(' ()') or 'all'}, ε = {number(one.epsilon)}"


def _list(found: Sequence[Setting]) -> str:
    """Settings by table: its number and its epsilons."""
    tables: dict[str, list[str]] = {}
    for one in found:
        tables.setdefault(one.table, []).append(number(one.epsilon))
    return "; ".join(f"Table {table}, ε = {', '.join(epsilons)}" for table, epsilons in tables.items())


def tuning_is_free(evidence: Evidence) -> Finding:
    """Judge the claim: the last training alone spends the printed epsilon, with nothing left for tuning."""
    whole = [off >= -_SAME for _, _, off in _closest(evidence)]
    text = f"In {sum(whole)} of {len(whole)} settings of Tables 13 to 23 one training spends the whole printed ε"
    private = [run for run in evidence.ours.runs if run.ledger.get("epsilon") is not None]
    unpaid = sum(any(_UNPAID in sentence for sentence in run.ledger.get("not_accounted", ())) for run in private)
    here = f"{unpaid} of {len(private)} private cells say in their ledger that the choice was not paid for"
    return decided(all(whole), COMPUTED, text, here if private else "")


def later_results(evidence: Evidence) -> Finding:
    """Judge the claims on later results of others, as mehta2023 quotes them too."""
    quoted = {
        row["dataset"]: row["value"]
        for row in published_rows(RESULTS, "mehta2023")
        if row["table"] == "1" and row["source"].startswith("Bu et al.") and float(row["epsilon"]) == 1
    }
    text = ", ".join(f"{name} {quoted.get(name, 'nothing')} ({value} here)" for name, value in _BU.items())
    text = f"Of Bu et al. at ε = 1 mehta2023's Table 1 quotes {text}"
    if any(quoted.get(name, value) != value for name, value in _BU.items()):
        return decided(False, PRINTED, text)
    return undecided("A citation; the 82.5 of Klause et al. stands in no table that is held here", text)
