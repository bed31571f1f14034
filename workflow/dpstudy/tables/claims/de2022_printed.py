"""The printed numbers of de2022 by role."""

from collections.abc import Mapping, Sequence

from dpstudy.tables.claims.grid import Value
from dpstudy.tables.claims.scores import Printed, Run, Scores, printed_value

PAPER = "de2022"
CIFAR10, CIFAR100, IMAGENET, PLACES = "CIFAR-10", "CIFAR-100", "ImageNet-1k", "Places-365"
# The roles of other authors' numbers: without extra data, ScatterNet (Table 3), fine-tuned (Table 5), from CIFAR-100
# (Table 11).
PRIOR, SCATTERNET, PRIOR_TUNED, PRIOR_CIFAR100 = "prior", "prior-scatternet", "prior-fine-tuned", "prior-cifar100"
CITED = (PRIOR, SCATTERNET, PRIOR_TUNED, PRIOR_CIFAR100)
RECORDS = {CIFAR10: (50_000, 45_000), CIFAR100: (50_000, 45_000), IMAGENET: (1_271_167,), PLACES: (1_803_460,)}
# Cells on fewer records do not stand beside the paper's numbers, nor beside others'.
FEWEST = {dataset: min(sizes) for dataset, sizes in RECORDS.items()}
_BY_METHOD = {
    ("5", "DP-SGD (all layers)"): "all-layers",
    ("5", "DP-SGD (classifier layer)"): "classifier",
    ("6", "DP-SGD (classifier layer)"): "nfnet",
    ("6", "non-private"): "nonprivate-nfnet",
    ("7", "DP-SGD (all layers)"): "places-all",
    ("7", "DP-SGD (classifier layer)"): "places-classifier",
    ("7", "non-private (all layers)"): "nonprivate-places-all",
    ("7", "non-private (classifier layer)"): "nonprivate-places-classifier",
}
_ONE_ROLE = {"4": "scratch-imagenet", "10": "all-layers-smaller", "11": "all-layers-cifar100"}
# Numbers of figures that only the text of sections 1 and 4.2 prints, all at epsilon 8.
FIGURE_4 = {"NF-ResNet-50": 75.4, "NF-ResNet-200": 79.9}  # last layer, from the shallower to the deeper
FIGURE_5 = {"jft-300m": 81.3, "jft-4b": 82.2}


def printed_scores(rows: Sequence[Mapping[str, str]]) -> Scores:
    """The top-1 accuracies in Tables 2 (validation) to 7, 10 and 11, and those of Figures 4 and 5 in the text.

    A printed standard deviation over five runs gives a standard error; what has none counts as exact.
    """
    values: dict[tuple[str, str, float], Value] = {}
    ablation = []
    for row in rows:
        if row["metric"] != "top1":
            continue
        value, epsilon = printed_value(row), float(row["epsilon"])
        if row["table"] == "2" and row["split"] == "validation":
            method = row["method"].removeprefix("DP-SGD: ")
            ablation.append(Run(row["dataset"], "ablation", method, epsilon, 45_000, value, {}, {}))
        elif role := _role(row):
            key = (row["dataset"], role, epsilon)
            if key not in values or values[key].number < value.number:  # of two earlier results the better counts
                values[key] = value
    for role, accuracy in FIGURE_5.items():
        values[IMAGENET, role, 8.0] = Value(accuracy)
    figure_4 = [
        Run(IMAGENET, "nf-resnets-classifier", network, 8.0, RECORDS[IMAGENET][0], Value(accuracy), {}, {})
        for network, accuracy in FIGURE_4.items()
    ]
    return Scores(values, [*ablation, *figure_4])


def _role(row: Mapping[str, str]) -> str | None:
    """The role of a printed number; None in tables that repeat others."""
    table = row["table"]
    if row["source"]:
        if table == "3" and row["pretraining"] == "scatternet":
            return SCATTERNET
        return {"3": PRIOR, "4": PRIOR, "5": PRIOR_TUNED, "11": PRIOR_CIFAR100}.get(table)
    if table == "3":
        return row["model"].lower()
    return _ONE_ROLE.get(table) or _BY_METHOD.get((table, row["method"]))


PRINTED = Printed(PAPER, printed_scores, RECORDS, CITED, FEWEST)
level = PRINTED.level
