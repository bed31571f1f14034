"""Claims of de2022 that quote other work, or that neither its tables nor a study's cells can decide."""

from dpstudy.tables.claims.de2022_printed import CIFAR10, CIFAR100, IMAGENET
from dpstudy.tables.claims.finding import PRINTED, Finding, decided, number, undecided
from dpstudy.tables.claims.role_evidence import Evidence
from dpstudy.tables.published import RESULTS, published_rows

_MEHTA_FIRST = {1.0: 81.1, 4.0: 81.7}  # ImageNet, epsilon -> accuracy, of mehta2023's first version
_BU = {CIFAR10: "96.7", CIFAR100: "83.0"}  # of Bu et al. at epsilon 1


def concurrent_result(evidence: Evidence) -> Finding:
    """Judge the claim on the ImageNet result of an earlier version of mehta2023."""
    best: dict[float, float] = {}
    for row in published_rows(RESULTS, "mehta2023"):
        if row["dataset"] == IMAGENET and row["value"] and row["metric"] == "top1" and not row["source"]:
            best[float(row["epsilon"])] = max(best.get(float(row["epsilon"]), 0.0), float(row["value"]))
    text = ", ".join(
        f"{value} at ε = {number(e)} (mehta2023's best now {best[e]})" for e, value in _MEHTA_FIRST.items()
    )
    return undecided("A citation of a version of mehta2023 whose tables are not those held here", text)


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


def pretraining_settings(evidence: Evidence) -> Finding:
    """Judge the claim on how models were pre-trained without privacy."""
    listed = sorted({row["table"] for row in evidence.hyperparameters}, key=int)
    return undecided(
        "A description of pre-training; what cells record of public weights is their file, not how they were trained",
        f"Appendix C.3 alone: the tables of settings ({listed[0]} to {listed[-1]}) are about the private trainings",
    )
