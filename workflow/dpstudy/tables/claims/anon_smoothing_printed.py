"""The printed numbers of anon_smoothing by role."""

from collections.abc import Mapping, Sequence

from dpstudy.tables.claims.grid import Value
from dpstudy.tables.claims.scores import Printed, Run, Scores

PAPER = "anon_smoothing"
CIFAR10, CHEXPERT = "CIFAR-10", "CheXpert"
RECORDS = {CIFAR10: (50_000,), CHEXPERT: (224_316,)}  # section 4.1
SMOOTHING, DP_SGD, FREE = "instance-smoothing", "dp-sgd", "nonprivate"
DELTA = 1e-5  # of the guarantee (section 4.2); the theorems' own is taken to be the same
EPSILONS = (2.0, 3.0, 8.0)  # at which the paper has results
DISTANCES = {"car": 129.25, "dog": 191.08}  # mean, to the 5 nearest neighbours (section 1)
_ROLES = {"DP-SGD": DP_SGD, "instance-smoothing": SMOOTHING, "non-private": FREE}


def printed_scores(rows: Sequence[Mapping[str, str]]) -> Scores:
    """The scores of Table 1; each backbone counts as a data set, and each number, without seeds, as exact."""
    runs = []
    for row in rows:
        place, epsilon, backbone = f"{row['dataset']}, {row['model']}", float(row["epsilon"]), row["model"]
        value, n = Value(float(row["value"])), RECORDS[row["dataset"]][0]
        runs.append(Run(place, _ROLES[row["method"]], row["method"], epsilon, n, value, {}, {}, backbone=backbone))
    return Scores({(run.dataset, run.role, run.epsilon): run.accuracy for run in runs}, runs)


PRINTED = Printed(PAPER, printed_scores, RECORDS, (), by_backbone=True)
